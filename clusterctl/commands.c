/* commands.c: see command.h: the table of commands and the command line. */
#include "clusterctl/commands.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/base/name.h"

#define NAME_SIZE 48 /* the longest "word word" of a command */

#define COMMAND_ROW(name) &name,
static const struct command *const commands[] = { COMMANDS(COMMAND_ROW) };
#undef COMMAND_ROW

static const struct opt global_rows[] = {
	{ .name = "state",
	    .type = OPT_TEXT,
	    .arg = "DIR",
	    .offset = offsetof(struct global_opts, state),
	    .help = "state directory (else $MUSTER_STATE, /var/lib/muster)" },
	{ .name = "json",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct global_opts, json),
	    .help = "one JSON object a line" },
	{ .name = "no-color",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct global_opts, no_color),
	    .help = "no colours (also $NO_COLOR)" },
	{ .name = "verbose",
	    .letter = 'v',
	    .type = OPT_COUNT,
	    .offset = offsetof(struct global_opts, verbose),
	    .help = "say more on standard error; twice: still more" },
	{ .name = "version",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct global_opts, version),
	    .help = "the version, as the command of that name" },
	{ .name = "help",
	    .letter = 'h',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct global_opts, help),
	    .help = "this text" },
};

static const struct opt_set global_set = {
	.title = "Everywhere",
	.rows = global_rows,
	.n = nitems(global_rows),
};

static int find_command(struct invocation *, int argc, char **argv,
    int *n_words, struct err *);
static bool is_family(const char *word);
static int parse_own(struct invocation *, struct err *);
static int check_args(const struct invocation *, struct err *);
static int no_leading(const void *);

const struct command *
command_at(size_t i)
{
	return i < nitems(commands) ? commands[i] : NULL;
}

const struct command *
command_find(const char *name)
{
	for (size_t i = 0; i < nitems(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

const struct opt_set *
command_set(const struct command *c, size_t i)
{
	if (i < c->n_sets)
		return &c->sets[i];
	return i == c->n_sets && c->fields != NULL ?
	    fields_opts(c->fields, c->fields_offset) :
	    NULL;
}

const struct opt_set *
command_global_opts(void)
{
	return &global_set;
}

int
command_parse(struct invocation *inv, int argc, char **argv, struct err *e)
{
	struct opt_home home = { &global_set, &inv->global };
	struct opt_line before = { .homes = &home,
		.n_homes = 1,
		.n_leading = no_leading };
	int n_words;

	memset(inv, 0, sizeof(*inv));
	if (opts_parse(&before, argc, argv, &argc, e) == -1)
		return -1;
	if (inv->global.version) {
		inv->command = &cmd_version;
		return 0;
	}
	if (find_command(inv, argc, argv, &n_words, e) == -1)
		return -1;
	inv->argc = argc - n_words;
	inv->argv = argv + n_words;
	return inv->command != NULL ? parse_own(inv, e) : 0;
}

int
command_unknown(const char *name, struct err *e)
{
	const char *names[nitems(commands)], *near;

	for (size_t i = 0; i < nitems(commands); i++)
		names[i] = commands[i]->name;
	near = name_suggest(name, names, nitems(commands));
	for (size_t i = 0; near == NULL && i < nitems(commands); i++)
		if (strncmp(names[i], name, strlen(name)) == 0)
			near = names[i];
	if (near != NULL)
		return err_set(e, ERR_USAGE,
		    "unknown command '%.40s'; did you mean '%s'?", name, near);
	return err_set(e, ERR_USAGE,
	    "unknown command '%.40s' (see clusterctl help)", name);
}

/* One or two words name a command; a family's name alone, or none at all,
 * asks for help. */
static int
find_command(struct invocation *inv, int argc, char **argv, int *n_words,
    struct err *e)
{
	char name[NAME_SIZE];

	*n_words = argc > 0 ? 1 : 0;
	if (argc == 0)
		return 0;
	if (argc > 1) {
		snprintf(name, sizeof(name), "%.20s %.20s", argv[0], argv[1]);
		if ((inv->command = command_find(name)) != NULL) {
			*n_words = 2;
			return 0;
		}
	}
	if ((inv->command = command_find(argv[0])) != NULL)
		return 0;
	if (!is_family(argv[0]))
		return command_unknown(argv[0], e);
	if (argc > 1 && argv[1][0] != '-')
		return command_unknown(name, e);
	inv->family = argv[0];
	inv->global.help |= argc > 1 &&
	    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
	return 0;
}

static bool
is_family(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < nitems(commands); i++)
		if (strncmp(commands[i]->name, word, len) == 0 &&
		    commands[i]->name[len] == ' ')
			return true;
	return false;
}

static int
parse_own(struct invocation *inv, struct err *e)
{
	const struct command *c = inv->command;
	const struct opt_set *set;
	struct opt_home homes[OPT_SETS_MAX];
	struct opt_line o = { .homes = homes, .n_leading = c->n_leading };
	char *opts = xcalloc(1, c->opts_size);

	inv->opts = opts;
	o.opts = opts;
	for (size_t i = 0; (set = command_set(c, i)) != NULL; i++) {
		assert(o.n_homes < nitems(homes) - 1);
		homes[o.n_homes++] =
		    (struct opt_home){ set, opts + set->offset };
	}
	homes[o.n_homes++] = (struct opt_home){ &global_set, &inv->global };
	if (opts_parse(&o, inv->argc, inv->argv, &inv->argc, e) == -1)
		return err_wrap(e, "%s", c->name);
	inv->argv[inv->argc] = NULL;
	return inv->global.help ? 0 : check_args(inv, e);
}

static int
check_args(const struct invocation *inv, struct err *e)
{
	const struct command *c = inv->command;

	if (inv->argc < c->min_args)
		return err_set(e, ERR_USAGE,
		    "%s: something is missing; usage: clusterctl %s %s",
		    c->name, c->name, c->usage);
	if (c->max_args != ANY_NUMBER && inv->argc > c->max_args)
		return err_set(e, ERR_USAGE,
		    "%s: '%.60s' is too much; usage: clusterctl %s %s", c->name,
		    inv->argv[c->max_args], c->name, c->usage);
	return 0;
}

static int
no_leading(const void *opts)
{
	(void)opts;
	return 0;
}
