/* htaccess.c: see htaccess.h. */
#include "proxyd/static/htaccess.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/base/io.h"

#define DEPTH_MAX    8	  /* containers in containers */
#define LINE_LEN_MAX 1024 /* with its continuations */

/* The arguments of a directive: text up to the end of the line. */
typedef bool args_fn(const char *args);

static args_fn any, one, number, on_off, signature, indexes, off;

/*
 * `module`: an Apache without that one answers every request with 500, so
 * the row holds only inside an <IfModule> that names it; NULL: every Apache
 * that serves files has it.
 */
static const struct {
	const char *name;
	args_fn *right; /* what it may say to be harmless */
	const char *module;
	enum htaccess verdict;
	const char *why;
} directives[] = {
	{ "AcceptPathInfo", on_off, NULL, HTACCESS_HARMLESS,
	    "is for paths that go on behind a file; those are the node's" },
	{ "CGIPassAuth", on_off, NULL, HTACCESS_HARMLESS,
	    "is for programs only" },
	{ "DirectoryIndex", any, NULL, HTACCESS_DIRECTORY,
	    "says which file answers for a directory" },
	{ "DirectorySlash", on_off, NULL, HTACCESS_DIRECTORY,
	    "says whether directories without slash redirect" },
	{ "EnableMMAP", on_off, NULL, HTACCESS_HARMLESS,
	    "how bytes are read, not which" },
	{ "EnableSendfile", on_off, NULL, HTACCESS_HARMLESS, "the same" },
	{ "FallbackResource", one, NULL, HTACCESS_DIRECTORY,
	    "answers for what does not exist, and for directories" },
	{ "HeaderName", one, NULL, HTACCESS_HARMLESS,
	    "the head of a listing, and listings are the node's" },
	{ "IndexIgnore", any, NULL, HTACCESS_HARMLESS,
	    "what a listing leaves out" },
	{ "IndexStyleSheet", one, NULL, HTACCESS_HARMLESS,
	    "the looks of a listing" },
	{ "LimitRequestBody", number, NULL, HTACCESS_HARMLESS,
	    "requests with a body are the node's" },
	{ "LimitXMLRequestBody", number, NULL, HTACCESS_HARMLESS, "the same" },
	{ "Options", indexes, NULL, HTACCESS_HARMLESS,
	    "[+-]Indexes alone: whether there are listings" },
	{ "php_flag", any, "php", HTACCESS_HARMLESS, "is for programs only" },
	{ "php_value", any, "php", HTACCESS_HARMLESS, "is for programs only" },
	{ "ReadmeName", one, NULL, HTACCESS_HARMLESS, "the foot of a listing" },
	{ "RewriteEngine", off, "rewrite", HTACCESS_HARMLESS,
	    "off: it rewrites nothing" },
	{ "ServerSignature", signature, NULL, HTACCESS_HARMLESS,
	    "a line on the node's own error pages" },
};

/* What holds other lines.  They are judged as if it always applied, so its
 * condition need not be understood. */
static const char *const containers[] = { "IfModule", "IfDefine", "Files" };
#define IF_MODULE 0

struct judge {
	int open[DEPTH_MAX];	   /* indexes in containers */
	char args[DEPTH_MAX][128]; /* and what they name */
	int depth;
};

static enum htaccess judge_line(struct judge *, char *line);
static enum htaccess judge_container(struct judge *, char *line);
static bool inside_module(const struct judge *, const char *module);
static size_t take_line(const char *text, size_t size, char *line, size_t *len);

enum htaccess
htaccess_judge(const char *text, size_t size)
{
	struct judge j = { .depth = 0 };
	enum htaccess worst = HTACCESS_HARMLESS;
	char line[LINE_LEN_MAX];

	if (size > HTACCESS_MAX || memchr(text, '\0', size) != NULL)
		return HTACCESS_DECIDES;
	while (size > 0) {
		size_t len, used = take_line(text, size, line, &len);
		enum htaccess verdict;

		if (len == LINE_LEN_MAX)
			return HTACCESS_DECIDES;
		verdict = judge_line(&j, line);
		if (verdict > worst)
			worst = verdict;
		if (worst == HTACCESS_DECIDES)
			return worst;
		text += used;
		size -= used;
	}
	return j.depth > 0 ? HTACCESS_DECIDES : worst;
}

/* Joins what ends with a backslash, and cuts white space at both ends.  The
 * bytes used; *len LINE_LEN_MAX: too long. */
static size_t
take_line(const char *text, size_t size, char *line, size_t *len)
{
	size_t i = 0, n = 0, from = 0;

	for (; i < size && text[i] != '\n'; i++) {
		size_t crlf = i + 1 < size && text[i + 1] == '\r';

		if (text[i] == '\\' && i + 1 + crlf < size &&
		    text[i + 1 + crlf] == '\n') {
			i += 1 + crlf;
			continue;
		}
		if (n < LINE_LEN_MAX)
			line[n++] = text[i];
	}
	*len = n;
	if (n == LINE_LEN_MAX)
		return i < size ? i + 1 : i;
	while (n > 0 && strchr(" \t\r\f\v", line[n - 1]) != NULL)
		n--;
	line[n] = '\0';
	from = strspn(line, " \t\r\f\v");
	memmove(line, line + from, n - from + 1);
	*len = n - from;
	return i < size ? i + 1 : i;
}

static enum htaccess
judge_line(struct judge *j, char *line)
{
	size_t n = strcspn(line, " \t");
	const char *args = line + n + strspn(line + n, " \t");

	if (*line == '\0' || *line == '#')
		return HTACCESS_HARMLESS;
	if (*line == '<')
		return judge_container(j, line);
	for (size_t i = 0; i < nitems(directives); i++)
		if (strlen(directives[i].name) == n &&
		    strncasecmp(directives[i].name, line, n) == 0)
			return directives[i].right(args) &&
				inside_module(j, directives[i].module) ?
			    directives[i].verdict :
			    HTACCESS_DECIDES;
	return HTACCESS_DECIDES;
}

static int
container_named(const char *name, size_t len)
{
	for (size_t i = 0; i < nitems(containers); i++)
		if (strlen(containers[i]) == len &&
		    strncasecmp(containers[i], name, len) == 0)
			return (int)i;
	return -1;
}

/* Only what is surely well-formed: with anything else every request gets a
 * 500 from the node. */
static enum htaccess
judge_container(struct judge *j, char *line)
{
	size_t len = strlen(line), n;
	bool closes = line[1] == '/';
	char *name = line + 1 + closes, *arg;
	int container;

	if (len < 3 || line[len - 1] != '>' || strchr(line, '"') != NULL)
		return HTACCESS_DECIDES;
	line[len - 1] = '\0';
	n = strcspn(name, " \t");
	arg = name + n + strspn(name + n, " \t");
	if ((container = container_named(name, n)) == -1)
		return HTACCESS_DECIDES;
	if (closes) {
		if (j->depth == 0 || *arg != '\0' ||
		    j->open[j->depth - 1] != container)
			return HTACCESS_DECIDES;
		j->depth--;
		return HTACCESS_HARMLESS;
	}
	if (j->depth == DEPTH_MAX || *arg == '\0' ||
	    strpbrk(arg, " \t~<>") != NULL || strlen(arg) >= sizeof(*j->args))
		return HTACCESS_DECIDES;
	memcpy(j->args[j->depth], arg, strlen(arg) + 1);
	j->open[j->depth++] = container;
	return HTACCESS_HARMLESS;
}

static bool
inside_module(const struct judge *j, const char *module)
{
	if (module == NULL)
		return true;
	for (int i = 0; i < j->depth; i++)
		if (j->open[i] == IF_MODULE && *j->args[i] != '!' &&
		    strcasestr(j->args[i], module) != NULL)
			return true;
	return false;
}

/* --- arguments */

static bool
any(const char *args)
{
	return *args != '\0';
}

static bool
one(const char *args)
{
	return any(args) && strpbrk(args, " \t\"'") == NULL;
}

static bool
number(const char *args)
{
	size_t n = strspn(args, "0123456789");

	return n > 0 && n < 10 && args[n] == '\0';
}

static bool
on_off(const char *args)
{
	return strcasecmp(args, "on") == 0 || strcasecmp(args, "off") == 0;
}

static bool
off(const char *args)
{
	return strcasecmp(args, "off") == 0;
}

static bool
signature(const char *args)
{
	return on_off(args) || strcasecmp(args, "email") == 0;
}

/* "-Indexes", "+Indexes": other words, and a set without sign, also say
 * whether symlinks are followed. */
static bool
indexes(const char *args)
{
	return (*args == '+' || *args == '-') &&
	    strcasecmp(args + 1, "Indexes") == 0;
}
