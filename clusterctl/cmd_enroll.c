/* cmd_enroll.c: one line to paste on a machine that shall join. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/offer.h"
#include "common/base/io.h"
#include "common/registry/tokens.h"

#define TTL_MAX_MS (90LL * 24 * 3600 * 1000)

struct enroll_opts {
	struct opt_list roles;
	int64_t ttl_ms;
	uint64_t uses;
	const char *from;
	bool approve;
};

static const struct opt enroll_rows[] = {
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_LIST,
	    .arg = "ROLE",
	    .offset = offsetof(struct enroll_opts, roles),
	    .help = "a role that the machine gets; may be repeated" },
	{ .name = "ttl",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .offset = offsetof(struct enroll_opts, ttl_ms),
	    .initial = "1h",
	    .max = TTL_MAX_MS,
	    .help = "how long the line works" },
	{ .name = "uses",
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .offset = offsetof(struct enroll_opts, uses),
	    .initial = "1",
	    .min = 1,
	    .max = TOKEN_USES_MAX,
	    .help = "how many machines may use it" },
	{ .name = "from",
	    .type = OPT_TEXT,
	    .arg = "CIDR",
	    .offset = offsetof(struct enroll_opts, from),
	    .help = "only from these addresses" },
	{ .name = "approve",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct enroll_opts, approve),
	    .help = "the machine waits until clusterctl approve NAME" },
};

static int run_enroll(struct context *, const void *, int, char **,
    struct err *);
static int describe(const struct enroll_opts *, const char *name,
    struct token_row *, struct err *);
static int check_name(struct context *, const char *name, struct err *);

const struct command cmd_enroll = {
	.name = "enroll",
	.usage = "[NAME] --role ROLE... [options]",
	.summary = "print the one line that lets a machine join",
	.about = "The line holds a one-time secret: send it as you would a "
		 "password.  NAME fixes the\nnode's name; without it the "
		 "machine uses its host name, or what its join says.\n",
	.examples = "  clusterctl enroll web7 --role worker_http\n"
		    "  clusterctl enroll --role worker_http --uses 20 --ttl 8h "
		    "--from 10.0.0.0/24\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(enroll_rows, struct enroll_opts),
	.max_args = 1,
	.run = run_enroll,
};

static int
run_enroll(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct enroll_opts *o = opts;
	const char *name = argc > 0 ? argv[0] : NULL;
	struct offer offer = { 0 };
	int rv;

	if (describe(o, name, &offer.row, e) == -1 ||
	    (name != NULL && check_name(cx, name, e) == -1))
		return -1;
	rv = offer_make(cx, &offer, o->ttl_ms, e);
	if (rv == 0)
		offer_print(cx, &offer, "nodeagent join");
	offer_wipe(&offer);
	return rv;
}

static int
describe(const struct enroll_opts *o, const char *name, struct token_row *row,
    struct err *e)
{
	*row = (struct token_row){ .kind = HOLDER_NODE,
		.uses = (int64_t)o->uses,
		.approve = o->approve };
	if (o->roles.n == 0)
		return err_set(e, ERR_USAGE,
		    "which role shall it have? (--role worker_http; see "
		    "clusterctl role list)");
	if (o->roles.n > nitems(row->roles))
		return err_set(e, ERR_USAGE, "a node has at most %zu roles",
		    nitems(row->roles));
	if (o->ttl_ms < 1000)
		return err_set(e, ERR_USAGE, "--ttl must be a second or more");
	if (name != NULL && name_check("node name", name, e) == -1)
		return -1;
	if (name != NULL && o->uses > 1)
		return err_set(e, ERR_USAGE,
		    "only one machine can be %s: leave out the name or --uses",
		    name);
	for (size_t i = 0; i < o->roles.n; i++) {
		if (name_check_role(o->roles.v[i], e) == -1)
			return -1;
		snprintf(row->roles[row->n_roles++], sizeof(row->roles[0]),
		    "%s", o->roles.v[i]);
	}
	snprintf(row->name, sizeof(row->name), "%s", name != NULL ? name : "");
	if (o->from != NULL && strlen(o->from) >= sizeof(row->from))
		return err_set(e, ERR_USAGE, "--from '%.60s' is no CIDR range",
		    o->from);
	snprintf(row->from, sizeof(row->from), "%s",
	    o->from != NULL ? o->from : "");
	return 0;
}

/* A join under this name would be refused as a conflict: better said now. */
static int
check_name(struct context *cx, const char *name, struct err *e)
{
	struct node n;

	if (nodes_get(context_registry(cx), name, &n, e) == -1)
		return e->code == ERR_NO_TARGET ? 0 : -1;
	if (!n.has_key)
		return 0;
	return err_set(e, ERR_CONFLICT,
	    "node %s has joined already (clusterctl node remove %s first, or "
	    "choose another name)",
	    name, name);
}
