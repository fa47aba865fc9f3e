/* cmd_operator.c: who may give orders, and which. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/grants.h"
#include "clusterctl/offer.h"
#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/tell.h"
#include "clusterctl/view.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/text.h"
#include "common/registry/operators.h"

#define DAY_MS	   (24LL * 3600 * 1000)
#define TTL_MAX_MS (36500 * DAY_MS)

#define JOIN_COMMAND "clusterctl operator join"

struct add_opts {
	struct opt_list grants;
	const char *ttl;
	int64_t join_within_ms;
};

#define GRANT_ROW                                                           \
	{                                                                   \
		.name = "grant", .letter = 'g', .type = OPT_LIST,           \
		.arg = "VERB[:ROLE]",                                       \
		.offset = offsetof(struct add_opts, grants),                \
		.help = "what it may do, e.g. exec:worker_http; * is all; " \
			"may be repeated"                                   \
	}
#define TTL_ROW                                                       \
	{                                                             \
		.name = "ttl", .type = OPT_TEXT, .arg = "TIME|never", \
		.offset = offsetof(struct add_opts, ttl),             \
		.help = "for how long from now (default 90d)"         \
	}
#define JOIN_ROW                                                            \
	{                                                                   \
		.name = "join-within", .type = OPT_DURATION, .arg = "TIME", \
		.offset = offsetof(struct add_opts, join_within_ms),        \
		.initial = "1h", .max = 90 * DAY_MS,                        \
		.help = "how long the printed line works"                   \
	}

static const struct opt add_rows[] = { GRANT_ROW, TTL_ROW, JOIN_ROW };
static const struct opt set_rows[] = { GRANT_ROW, TTL_ROW };
static const struct opt token_rows[] = { JOIN_ROW };

static const struct column operator_columns[] = {
	{ .title = "OPERATOR", .key = "name" },
	{ .title = "GRANTS", .key = "grants", .kind = COLUMN_LIST },
	{ .title = "UNTIL", .key = "until" },
	{ .title = "JOINED", .key = "joined", .kind = COLUMN_BOOL },
	{ .title = "CERTIFICATE UNTIL", .key = "certificate_until" },
};

static int run_add(struct context *, const void *, int, char **, struct err *);
static int run_set(struct context *, const void *, int, char **, struct err *);
static int run_token(struct context *, const void *, int, char **,
    struct err *);
static int run_list(struct context *, const void *, int, char **, struct err *);
static int run_revoke(struct context *, const void *, int, char **,
    struct err *);
static bool grants_everything(const struct opt_list *);
static int until_of(const char *ttl, int64_t *until_s, struct err *);
static int make_offer(struct context *, const char *name, int64_t ttl_ms,
    struct offer *, struct err *);
static int put_operator(const struct operator_row *, void *arg);
static void put_time(struct table *, int64_t s, const char *zero);

const struct command cmd_operator_add = {
	.name = "operator add",
	.usage = "NAME --grant VERB[:ROLE]... [--ttl TIME]",
	.summary = "a person or script that may give orders",
	.about = "Prints the line to type on the operator's machine "
		 "(clusterctl operator join).  It\nholds a one-time secret.\n\n"
		 "Verbs: exec, push, pull, status (show_nodes), sync, or * for "
		 "all.  A grant without\nROLE holds on every node.\n",
	.examples = "  clusterctl operator add deploy --grant push:worker_http "
		    "--grant exec:worker_http\n"
		    "  clusterctl operator add anna --grant '*' --ttl never\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(add_rows, struct add_opts),
	.min_args = 1,
	.max_args = 1,
	.run = run_add,
};

const struct command cmd_operator_set = {
	.name = "operator set",
	.usage = "OPERATOR [--grant VERB[:ROLE]]... [--ttl TIME]",
	.summary = "other grants, or a later end; the certificate follows",
	.about = "New grants replace the old ones.  The operator's certificate "
		 "has them when it renews\nitself; to take rights away at "
		 "once, revoke.\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(set_rows, struct add_opts),
	.min_args = 1,
	.max_args = 1,
	.run = run_set,
};

const struct command cmd_operator_token = {
	.name = "operator token",
	.usage = "OPERATOR [--join-within TIME]",
	.summary = "another line to join with, if the first one ran out",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(token_rows, struct add_opts),
	.min_args = 1,
	.max_args = 1,
	.run = run_token,
};

const struct command cmd_operator_list = {
	.name = "operator list",
	.usage = "",
	.summary = "the operators, their grants and how long they hold",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_VIEW,
	.run = run_list,
};

const struct command cmd_operator_revoke = {
	.name = "operator revoke",
	.usage = "OPERATOR",
	.summary = "take all rights away, on every node, now",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	.min_args = 1,
	.max_args = 1,
	.run = run_revoke,
};

static int
run_add(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	const struct add_opts *o = opts;
	struct offer offer;
	int64_t until_s;
	int rv;

	(void)argc;
	if (o->grants.n == 0)
		return err_set(e, ERR_USAGE,
		    "operator add: what may %.64s do? (--grant VERB[:ROLE])",
		    argv[0]);
	if (grants_check(r, &o->grants, e) == -1 ||
	    until_of(o->ttl != NULL ? o->ttl : "90d", &until_s, e) == -1 ||
	    registry_begin(r, e, "add operator %.64s", argv[0]) == -1)
		return -1;
	rv = operators_add(r, argv[0], o->grants.v, o->grants.n, until_s, e);
	if (rv == 0)
		rv = make_offer(cx, argv[0], o->join_within_ms, &offer, e);
	rv = registry_end(r, rv, e);
	if (rv == 0)
		offer_print(cx, &offer, JOIN_COMMAND);
	offer_wipe(&offer);
	return rv;
}

static int
run_set(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	const struct add_opts *o = opts;
	const char *grants[GRANTS_MAX];
	struct operator_row op;
	int64_t until_s;
	size_t n = o->grants.n;

	(void)argc;
	if (n == 0 && o->ttl == NULL)
		return err_set(e, ERR_USAGE,
		    "operator set: say --grant or --ttl");
	if (operators_get(r, argv[0], &op, e) == -1 ||
	    grants_check(r, &o->grants, e) == -1 ||
	    (n > 0 && !grants_everything(&o->grants) &&
		operators_check_last(r, argv[0], e) == -1))
		return -1;
	until_s = op.until_s;
	if (o->ttl != NULL && until_of(o->ttl, &until_s, e) == -1)
		return -1;
	for (size_t i = 0; n == 0 && i < op.n_grants; i++)
		grants[i] = op.grants[i];
	if (operators_set(r, argv[0], n > 0 ? o->grants.v : grants,
		n > 0 ? n : op.n_grants, until_s, e) == -1)
		return -1;
	return report_done(cx, "Operator %s is changed.", argv[0]);
}

static int
run_token(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct add_opts *o = opts;
	struct operator_row op;
	struct offer offer;

	(void)argc;
	if (operators_get(context_registry(cx), argv[0], &op, e) == -1)
		return -1;
	if (op.has_key && op.cert_not_after_s > clock_wall_ms() / 1000)
		return err_set(e, ERR_CONFLICT,
		    "operator %s has joined already (for another machine, add "
		    "another operator; for a lost key, revoke this one)",
		    op.name);
	if (make_offer(cx, argv[0], o->join_within_ms, &offer, e) == -1)
		return -1;
	offer_print(cx, &offer, JOIN_COMMAND);
	offer_wipe(&offer);
	return 0;
}

static int
run_list(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct table *t = table_new(operator_columns, nitems(operator_columns));
	int rv = view_each_operator(cx, put_operator, t, e);

	(void)opts;
	(void)argc;
	(void)argv;
	table_end(t);
	return rv;
}

static int
run_revoke(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	(void)argc;
	if (operators_check_last(context_registry(cx), argv[0], e) == -1 ||
	    operators_revoke(context_registry(cx), argv[0], e) == -1)
		return -1;
	report_done(cx, "Operator %s is revoked.", argv[0]);
	return tell_everybody(cx);
}

static bool
grants_everything(const struct opt_list *grants)
{
	for (size_t i = 0; i < grants->n; i++)
		if (strcmp(grants->v[i], "*") == 0)
			return true;
	return false;
}

/* "90d" from now, or "never" (0). */
static int
until_of(const char *ttl, int64_t *until_s, struct err *e)
{
	int64_t ms;

	if (strcmp(ttl, "never") == 0) {
		*until_s = 0;
		return 0;
	}
	if (text_parse_duration("--ttl", ttl, TTL_MAX_MS, &ms, e) == -1)
		return -1;
	*until_s = (clock_wall_ms() + ms) / 1000;
	return 0;
}

static int
make_offer(struct context *cx, const char *name, int64_t ttl_ms,
    struct offer *offer, struct err *e)
{
	*offer =
	    (struct offer){ .row = { .kind = HOLDER_OPERATOR, .uses = 1 } };
	snprintf(offer->row.name, sizeof(offer->row.name), "%s", name);
	return offer_make(cx, offer, ttl_ms, e);
}

static int
put_operator(const struct operator_row *op, void *arg)
{
	const char *grants[GRANTS_MAX];
	struct table *t = arg;

	for (size_t i = 0; i < op->n_grants; i++)
		grants[i] = op->grants[i];
	table_put(t, op->name);
	table_put_list(t, grants, op->n_grants);
	put_time(t, op->until_s, "never");
	table_put_bool(t, op->has_key);
	put_time(t, op->cert_not_after_s, NULL);
	return 0;
}

static void
put_time(struct table *t, int64_t s, const char *zero)
{
	char text[32];

	clock_format_utc(s * 1000, text, sizeof(text));
	table_put(t, s != 0 ? text : zero);
}
