/* cmd_nodeset.c: node sets as text: expanded, folded, counted. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/slurp.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/nodeset/nodeset.h"

#define STDIN_MAX (256UL * 1024 * 1024)

struct nodeset_opts {
	const char *separator;
	bool roles;
};

static const struct opt nodeset_rows[] = {
	{ .name = "separator",
	    .letter = 'S',
	    .type = OPT_TEXT,
	    .arg = "TEXT",
	    .offset = offsetof(struct nodeset_opts, separator),
	    .help = "between names (newline); knows \\n and \\t" },
};

static const struct opt fold_rows[] = {
	{ .name = "separator",
	    .letter = 'S',
	    .type = OPT_TEXT,
	    .arg = "TEXT",
	    .offset = offsetof(struct nodeset_opts, separator),
	    .help = "between parts (comma); knows \\n and \\t" },
	{ .name = "roles",
	    .letter = 'r',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct nodeset_opts, roles),
	    .help = "write @role where all nodes of a role are in the set" },
};

static int run_expand(struct context *, const void *, int, char **,
    struct err *);
static int run_fold(struct context *, const void *, int, char **, struct err *);
static int run_count(struct context *, const void *, int, char **,
    struct err *);
static int read_set(struct context *, int argc, char **argv, struct nodeset **,
    struct err *);
static int fold_roles(struct context *, const struct nodeset *,
    const char *separator, char **folded, struct err *);
static void print_names(const struct nodeset *, const char *separator);
static json_t *names_json(const struct nodeset *);
static char *unescape(const char *text);

#define ABOUT                                                                  \
	"An argument is an expression, read from left to right: , union, ! "   \
	"difference,\n& intersection, ^ either but not both.  - reads words "  \
	"from stdin.  @role and\nwildcards ask the cluster; other names need " \
	"not exist.\n"

const struct command cmd_nodeset_expand = {
	.name = "nodeset expand",
	.usage = "[-S TEXT] SET...|-",
	.summary = "the names of a node set, in order",
	.about = ABOUT,
	.examples = "  clusterctl nodeset expand 'web[01-20]!web07'\n"
		    "  clusterctl nodeset expand -S ' ' @worker_http\n",
	.section = SECTION_SELF,
	OPTS_OF(nodeset_rows, struct nodeset_opts),
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_expand,
};

const struct command cmd_nodeset_fold = {
	.name = "nodeset fold",
	.usage = "[-r] [-S TEXT] SET...|-",
	.summary = "names as one short node set",
	.about = ABOUT,
	.examples = "  clusterctl nodes | clusterctl nodeset fold -\n",
	.section = SECTION_SELF,
	OPTS_OF(fold_rows, struct nodeset_opts),
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_fold,
};

const struct command cmd_nodeset_count = {
	.name = "nodeset count",
	.usage = "SET...|-",
	.summary = "how many names a node set has",
	.about = ABOUT,
	.section = SECTION_SELF,
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.run = run_count,
};

/* Expressions, and the text that those of standard input point into. */
struct words {
	const char **v;
	size_t n, room;
	char *text;
};

static int read_stdin(struct words *, struct err *);
static void add_word(struct words *, const char *);
static bool asks_the_cluster(const struct words *);

static int
run_expand(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct nodeset_opts *o = opts;
	struct nodeset *set;
	char *separator;

	if (read_set(cx, argc, argv, &set, e) == -1)
		return -1;
	separator = unescape(o->separator != NULL ? o->separator : "\n");
	if (output_is_json())
		output_json(json_pack("{s:o}", "nodes", names_json(set)));
	else
		print_names(set, separator);
	free(separator);
	nodeset_free(set);
	return 0;
}

static int
run_fold(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct nodeset_opts *o = opts;
	char *separator, *folded;
	struct nodeset *set;
	int rv;

	if (read_set(cx, argc, argv, &set, e) == -1)
		return -1;
	separator = unescape(o->separator != NULL ? o->separator : ",");
	if (o->roles)
		rv = fold_roles(cx, set, separator, &folded, e);
	else
		rv = nodeset_fold(set, separator, &folded, e);
	if (rv == 0) {
		if (output_is_json())
			output_json(json_pack("{s:s,s:I}", "set", folded,
			    "count", (json_int_t)nodeset_count(set)));
		else if (*folded != '\0')
			puts(folded);
		free(folded);
	}
	free(separator);
	nodeset_free(set);
	return rv;
}

static int
fold_roles(struct context *cx, const struct nodeset *set, const char *separator,
    char **folded, struct err *e)
{
	struct nodeset_resolver known;
	const struct directory *d;
	const char **roles;
	size_t n;
	int rv;

	if (context_need(cx, NEEDS_CLUSTER, e) == -1)
		return -1;
	d = context_directory(cx);
	known = directory_resolver(d);
	n = directory_n_roles(d);
	roles = xcalloc(n, sizeof(*roles));
	for (size_t i = 0; i < n; i++)
		roles[i] = directory_role_at(d, i);
	rv = nodeset_fold_roles(set, &known, roles, n, separator, folded, e);
	free(roles);
	return rv;
}

static int
run_count(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct nodeset *set;
	size_t n;

	(void)opts;
	if (read_set(cx, argc, argv, &set, e) == -1)
		return -1;
	n = nodeset_count(set);
	if (output_is_json())
		output_json(json_pack("{s:I}", "count", (json_int_t)n));
	else
		printf("%zu\n", n);
	nodeset_free(set);
	return 0;
}

static int
read_set(struct context *cx, int argc, char **argv, struct nodeset **set,
    struct err *e)
{
	struct nodeset_resolver known, *resolver = NULL;
	struct words w = { 0 };
	int rv = 0;

	for (int i = 0; i < argc && rv == 0; i++)
		if (strcmp(argv[i], "-") != 0)
			add_word(&w, argv[i]);
		else if (w.text == NULL)
			rv = read_stdin(&w, e);
	if (rv == 0 && asks_the_cluster(&w)) {
		rv = context_need(cx, NEEDS_CLUSTER, e);
		if (rv == 0) {
			known = directory_resolver(context_directory(cx));
			known.allow_unknown = true;
			resolver = &known;
		}
	}
	if (rv == 0)
		rv = nodeset_parse_list(w.v, w.n, resolver, set, e);
	free(w.v);
	free(w.text);
	return rv;
}

static int
read_stdin(struct words *w, struct err *e)
{
	size_t size;
	char *save, *word;

	if (slurp("-", STDIN_MAX, &w->text, &size, e) == -1)
		return -1;
	if (memchr(w->text, '\0', size) != NULL)
		return err_set(e, ERR_USAGE,
		    "standard input is no text: it holds a NUL byte");
	for (word = strtok_r(w->text, " \t\r\n", &save); word != NULL;
	     word = strtok_r(NULL, " \t\r\n", &save))
		add_word(w, word);
	return 0;
}

static void
add_word(struct words *w, const char *word)
{
	if (w->n == w->room) {
		w->room = w->room * 2 + 64;
		w->v = xreallocarray(w->v, w->room, sizeof(*w->v));
	}
	w->v[w->n++] = word;
}

static bool
asks_the_cluster(const struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (strpbrk(w->v[i], "@*?") != NULL)
			return true;
	return false;
}

static void
print_names(const struct nodeset *set, const char *separator)
{
	struct nodeset_iter it;
	const char *name;
	bool first = true;

	nodeset_iter_init(&it, set);
	while ((name = nodeset_iter_next(&it)) != NULL) {
		if (!first)
			fputs(separator, stdout);
		first = false;
		fputs(name, stdout);
	}
	if (!first)
		putchar('\n');
}

static json_t *
names_json(const struct nodeset *set)
{
	json_t *list = json_array();
	struct nodeset_iter it;
	const char *name;

	nodeset_iter_init(&it, set);
	while ((name = nodeset_iter_next(&it)) != NULL)
		json_array_append_new(list, json_string(name));
	return list;
}

static char *
unescape(const char *text)
{
	char *out = xstrdup(text), *to = out;

	for (const char *p = text; *p != '\0'; p++)
		if (p[0] == '\\' && p[1] == 'n')
			*to++ = '\n', p++;
		else if (p[0] == '\\' && p[1] == 't')
			*to++ = '\t', p++;
		else
			*to++ = *p;
	*to = '\0';
	return out;
}
