"""The demo: it shows what it says, and leaves nothing behind."""

import os
import re
from pathlib import Path

import muster


def read(path):
    try:
        return path.read_text(errors="replace")
    except OSError:  # the process has ended
        return ""


def test_demo(tmp_path):
    tmp_path.chmod(0o711)
    here = muster.ROOT / "tests" / "demo.sh"
    text = muster.run("bash", here, timeout=5 * muster.PATIENCE_S, env={
        "DEMO": "once", "B": os.path.relpath(muster.BIN, muster.ROOT),
        "XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}).stdout
    said = iter(text.splitlines())
    for line in (r"joined as web3 \(roles: worker_http\)",
                 r"web1: I am web1", r"web\[1-3\] \(3\)",
                 r"\[exit status 4\]",  # web3 is dead
                 r"\$ clusterctl site add shop\.example .*",
                 r"<p>This is web[12]\.", r"/cart, by http, for 127\.0\.0\.1",
                 r"Content-Encoding: br", r"X-Muster-Why: static",
                 r"\$ clusterctl site cert shop\.example .*",
                 r"/pay, by https, for 127\.0\.0\.1",
                 r"/pay, by https, for 127\.0\.0\.1", r"after 1 redirect",
                 r" *20 200", r"web1\b.*\bdown\b.*", r"shop\.example\b.*"):
        assert any(re.fullmatch(line, s) for s in said), f"{line}:\n{text}"
    home = re.search(r"--home (\S+)/home", text)[1]
    assert not Path(home).exists()
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline")
                if home in read(p)]
