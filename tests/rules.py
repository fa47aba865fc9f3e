#!/usr/bin/python3
"""The house rules that need no compiler (CONTRIBUTING.md).

usage: rules.py        prints each broken rule as file:line; exit status 1
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("proxyd", "nodeagent", "clusterctl")
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 100

# (what is looked for; False: everywhere, True: in programs only; an argument
#  that makes it right; the rule)
CALLS = [
    (r"strcpy|strcat|sprintf|vsprintf|gets|alloca", False, None,
     "no copy without a bound"),
    (r"system|popen|wordexp", False, None,
     "no shell"),
    (r"open|openat", True, r"O_CLOEXEC", "O_CLOEXEC from the first instant"),
    (r"socket|socketpair|accept4", True, r"SOCK_CLOEXEC",
     "SOCK_CLOEXEC from the first instant"),
    (r"pipe2|dup3|memfd_create|epoll_create1|inotify_init1|eventfd|timerfd"
     r"_create|signalfd", True, r"CLOEXEC", "close-on-exec at once"),
    (r"accept|pipe|dup|creat|epoll_create|inotify_init", True, None,
     "use the form that takes a close-on-exec flag"),
    (r"fopen", True, r'"[rwa+]*e|"[rwa+]*[be]*e', '"e" in fopen'),
    (r"strtok|atoi|atol|gethostbyname|localtime|gmtime|asctime|ctime|rand",
     False, None, "use the checked or re-entrant form"),
]

SQL = re.compile(r'"[^"\n]*\b(SELECT\s|INSERT\s+(OR \w+ )?INTO|'
                 r'DELETE\s+FROM|UPDATE\s+\w+\s+SET)')

# What each folder of common may include beside itself.
STANDS_ON = {"base": (), "net": ("base",), "nodeset": ("base",),
             "registry": ("base",), "audit": ("base",),
             "custody": ("base",),
             "enroll": ("base", "net", "registry")}

broken = []


def tell(path, line, rule):
    broken.append(f"{path}:{line}: {rule}")


def blank(match):
    """Spaces of the same shape, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group())


def without_comments(text):
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
                       r"|/\*.*?\*/|//[^\n]*", re.S)
    return token.sub(lambda m: m.group() if m.group()[0] in "\"'"
                     else blank(m), text)


def without_strings(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', blank, text)


def arguments(text, start):
    """The text between the parenthesis at start and its partner."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i]
    return text[start:]


def check_calls(path, text):
    bare = without_strings(text)
    for names, programs_only, needed, rule in CALLS:
        if programs_only and path.parts[0] == "tests":
            continue
        for m in re.finditer(rf"(?<![\w.>])({names})\(", bare):
            given = arguments(text, m.end() - 1)
            if needed is None or not re.search(needed, given):
                line = text.count("\n", 0, m.start()) + 1
                tell(path, line, f"{m.group(1)}(): {rule}")


def check_patience(path, text):
    for m in re.finditer(r"\b(sleep|usleep|nanosleep)\(", text):
        tell(path, text.count("\n", 0, m.start()) + 1,
             "no sleep in tests: wait for the condition")


def check_sql(path, text):
    if path.parts[0] == "tests" or path.parts[:2] == ("common", "registry"):
        return
    for m in SQL.finditer(text):
        tell(path, text.count("\n", 0, m.start()) + 1,
             "only common/registry speaks SQL")


def check_arrows(path, text):
    """programs -> common, and inside common as STANDS_ON says."""
    here, own = path.parts[0], path.parts[1]
    if here == "tests":
        return
    for n, line in enumerate(text.splitlines(), 1):
        m = re.match(r'#include "(\w+)/(\w+)', line)
        if not m:
            continue
        there, folder = m.groups()
        if there in PROGRAMS and there != here:
            tell(path, n, f"{here} includes a header of {there}")
        if here == "common" and (there != "common" or folder != own
                                 and folder not in STANDS_ON.get(own, ())):
            tell(path, n, f"common/{own} does not stand on {there}/{folder}")


def check_form(path, raw):
    lines = raw.splitlines()
    if len(lines) > FILE_LINES_MAX:
        tell(path, len(lines), f"over {FILE_LINES_MAX} lines: split it "
             "along a noun")
    name = path.name
    if not re.match(rf"/\*\s*(\*\s*)?{re.escape(name)}: ", raw):
        tell(path, 1, f"opens with /* {name}: ... */")
    if path.suffix == ".h" and not re.search(r"^#ifndef [A-Z0-9_]+_H$", raw,
                                             re.M):
        tell(path, 1, "a header has a guard FOLDER_NAME_H")
    start = None
    for n, line in enumerate(lines, 1):
        if re.match(r"[a-z_]\w*\(", line):
            start = n
        elif line == "}" and start is not None:
            # A test may open with a long table of cases.
            if n - start > FUNCTION_LINES_MAX and path.parts[0] != "tests":
                tell(path, start, f"a function of {n - start} lines")
            start = None
        if line != line.rstrip():
            tell(path, n, "trailing space")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            tell(path, n, "no TODO: do it, or open an issue")
    own = path.with_suffix(".h")
    if path.suffix == ".c" and (ROOT / own).exists():
        first = re.search(r'^#include [<"](.*)[">]', raw, re.M)
        if first is None or first.group(1) != str(own):
            tell(path, 1, f"includes {own} first")


def check_python(path, raw):
    for n, line in enumerate(raw.splitlines(), 1):
        if re.search(r"\btime\.sleep\(", line) and path.name != "muster.py":
            tell(path, n, "no sleep in tests: wait_for()")
        if re.search(r"shell=True|os\.system\(", line):
            tell(path, n, "no shell: an argv")


def main():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
        capture_output=True, text=True, check=True).stdout.splitlines()
    for path in sorted(Path(p) for p in listed if (ROOT / p).is_file()):
        if path.suffix in (".c", ".h"):
            raw = (ROOT / path).read_text()
            text = without_comments(raw)
            check_form(path, raw)
            check_calls(path, text)
            check_sql(path, text)
            check_arrows(path, text)
            if path.parts[0] == "tests":
                check_patience(path, text)
        elif path.suffix == ".py" and path.name != "rules.py":
            check_python(path, (ROOT / path).read_text())
    print("\n".join(broken) or "the house rules are kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
