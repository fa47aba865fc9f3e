/* cmd_token.c: the lines to join with that are still open. */
#include "clusterctl/command.h"

#include <string.h>

#include <sodium.h>

#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/tokens.h"

struct list_opts {
	bool all;
};

static const struct opt list_rows[] = {
	{ .name = "all",
	    .letter = 'a',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct list_opts, all),
	    .help = "also those that ran out or are used up" },
};

static const struct column token_columns[] = {
	{ .title = "ID", .key = "id" },
	{ .title = "KIND", .key = "kind" },
	{ .title = "NAME", .key = "name" },
	{ .title = "ROLES", .key = "roles", .kind = COLUMN_LIST },
	{ .title = "FROM", .key = "from" },
	{ .title = "USED", .key = "used", .kind = COLUMN_NUMBER },
	{ .title = "USES", .key = "uses", .kind = COLUMN_NUMBER },
	{ .title = "EXPIRES", .key = "expires" },
	{ .title = "APPROVE", .key = "approve", .kind = COLUMN_BOOL },
};

static int run_list(struct context *, const void *, int, char **, struct err *);
static int run_revoke(struct context *, const void *, int, char **,
    struct err *);
static int put_token(const struct token_row *, void *arg);

const struct command cmd_token_list = {
	.name = "token list",
	.usage = "[--all]",
	.summary = "the lines to join with that still work",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(list_rows, struct list_opts),
	.run = run_list,
};

const struct command cmd_token_revoke = {
	.name = "token revoke",
	.usage = "ID",
	.summary = "end a line to join with before its time",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = 1,
	.run = run_revoke,
};

struct listing {
	struct table *table;
	bool all;
	int64_t now_ms;
};

static int
run_list(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct list_opts *o = opts;
	struct listing l = { table_new(token_columns, nitems(token_columns)),
		o->all, clock_wall_ms() };
	int rv = tokens_each(context_registry(cx), put_token, &l, e);

	(void)argc;
	(void)argv;
	table_end(l.table);
	return rv;
}

static int
put_token(const struct token_row *row, void *arg)
{
	char id[2 * TOKEN_ID_SIZE + 1], until[32];
	const char *roles[NODE_ROLES_MAX];
	const struct listing *l = arg;

	if (!l->all && (row->used >= row->uses || row->expires_ms <= l->now_ms))
		return 0;
	sodium_bin2hex(id, sizeof(id), row->id, sizeof(row->id));
	clock_format_utc(row->expires_ms, until, sizeof(until));
	for (size_t i = 0; i < row->n_roles; i++)
		roles[i] = row->roles[i];
	table_put(l->table, id);
	table_put(l->table, row->kind == HOLDER_NODE ? "node" : "operator");
	table_put(l->table, *row->name != '\0' ? row->name : NULL);
	table_put_list(l->table, roles, row->n_roles);
	table_put(l->table, *row->from != '\0' ? row->from : NULL);
	table_put_number(l->table, row->used);
	table_put_number(l->table, row->uses);
	table_put(l->table, until);
	table_put_bool(l->table, row->approve);
	return 0;
}

static int
run_revoke(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	uint8_t id[TOKEN_ID_SIZE];
	size_t size;

	(void)opts;
	(void)argc;
	if (sodium_hex2bin(id, sizeof(id), argv[0], strlen(argv[0]), NULL,
		&size, NULL) == -1 ||
	    size != sizeof(id))
		return err_set(e, ERR_USAGE,
		    "'%.40s' is no token id: %d hexadecimal digits (clusterctl "
		    "token list)",
		    argv[0], 2 * TOKEN_ID_SIZE);
	if (tokens_revoke(context_registry(cx), id, e) == -1)
		return -1;
	return report_done(cx, "Token %s is revoked.", argv[0]);
}
