/* cmd_node_show.c: all that is known of a node; joins that were refused. */
#include "clusterctl/command.h"

#include <inttypes.h>
#include <stdio.h>

#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/view.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/cert.h"
#include "common/registry/tokens.h"

struct conflicts_opts {
	bool clear;
};

static const struct opt conflicts_rows[] = {
	{ .name = "clear",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct conflicts_opts, clear),
	    .help = "forget those of NODE" },
};

static const struct column conflict_columns[] = {
	{ .title = "NAME", .key = "name" },
	{ .title = "FINGERPRINT", .key = "fingerprint" },
	{ .title = "ADDRESS", .key = "address" },
	{ .title = "LAST TRIED", .key = "at" },
	{ .title = "WHY", .key = "why" },
};

static int run_show(struct context *, const void *, int, char **, struct err *);
static int run_conflicts(struct context *, const void *, int, char **,
    struct err *);
static json_t *describe(const struct node *);
static json_t *describe_roles(const struct node *);
static void print(const struct node *);
static void print_roles(const struct node *);
static void print_identity(const struct node *);
static int put_conflict(const struct join_request *, void *arg);

const struct command cmd_node_show = {
	.name = "node show",
	.usage = "NODE",
	.summary = "all that is known of a node",
	.section = SECTION_NODES,
	.needs = NEEDS_VIEW,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

const struct command cmd_node_conflicts = {
	.name = "node conflicts",
	.usage = "[--clear NODE]",
	.summary = "machines that claim the name or the key of another",
	.about = "A machine that was set up anew has a new key, and its old "
		 "name refuses it: remove\nthe node (clusterctl node remove) "
		 "and enroll it again.  If nobody set up a machine,\nsomebody "
		 "tries to be one of yours.\n\n"
		 "A machine that was cloned has the key of the first one: "
		 "remove the node, and\nenroll both, each with a state "
		 "directory of its own.\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(conflicts_rows, struct conflicts_opts),
	.max_args = 1,
	.run = run_conflicts,
};

static int
run_show(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct node n;

	(void)opts;
	(void)argc;
	if (view_node(cx, argv[0], &n, e) == -1)
		return -1;
	if (output_is_json())
		output_json(describe(&n));
	else
		print(&n);
	return 0;
}

static json_t *
describe(const struct node *n)
{
	json_t *o = json_pack("{s:s,s:s,s:s,s:i,s:s,s:o,s:o}", "name", n->name,
	    "uuid", n->uuid, "address", n->addr, "agent_port", n->agent_port,
	    "state", node_state_name(n->state), "roles", describe_roles(n),
	    "options", fields_json(&node_options, n));
	char fingerprint[FINGERPRINT_LEN + 1], until[32];

	if (!n->has_key)
		return o;
	key_fingerprint(n->key, fingerprint);
	json_object_set_new(o, "fingerprint", json_string(fingerprint));
	json_object_set_new(o, "serial", json_integer((json_int_t)n->serial));
	if (n->cert_not_after_s != 0) {
		clock_format_utc(n->cert_not_after_s * 1000, until,
		    sizeof(until));
		json_object_set_new(o, "certificate_until", json_string(until));
	}
	return o;
}

static json_t *
describe_roles(const struct node *n)
{
	json_t *roles = json_object();

	for (size_t i = 0; i < n->n_roles; i++)
		json_object_set_new(roles, n->roles[i].name,
		    n->roles[i].port != 0 ? json_integer(n->roles[i].port) :
					    json_null());
	return roles;
}

static void
print(const struct node *n)
{
	char text[OPTION_TEXT_MAX];

	printf("name         %s\nuuid         %s\naddress      %s\n", n->name,
	    n->uuid, n->addr);
	if (n->agent_port != 0)
		printf("agent port   %u\n", n->agent_port);
	else
		puts("agent        none: a plain backend");
	printf("state        %s\n", node_state_name(n->state));
	print_roles(n);
	for (size_t i = 0; i < node_options.n; i++) {
		option_text(&node_options.rows[i], n, text);
		printf("%-12s %s\n", node_options.rows[i].name, text);
	}
	if (n->has_key)
		print_identity(n);
}

static void
print_roles(const struct node *n)
{
	fputs("roles       ", stdout);
	for (size_t i = 0; i < n->n_roles; i++) {
		printf(" %s", n->roles[i].name);
		if (n->roles[i].port != 0)
			printf(" (port %u)", n->roles[i].port);
	}
	puts(n->n_roles == 0 ? " none" : "");
}

static void
print_identity(const struct node *n)
{
	char fingerprint[FINGERPRINT_LEN + 1], until[32];

	key_fingerprint(n->key, fingerprint);
	printf("key          %s\nserial       %" PRIu64 "\n", fingerprint,
	    n->serial);
	if (n->cert_not_after_s == 0)
		return;
	clock_format_utc(n->cert_not_after_s * 1000, until, sizeof(until));
	printf("certificate  until %s\n", until);
}

static int
run_conflicts(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct conflicts_opts *o = opts;
	struct table *t;
	int rv;

	if (o->clear != (argc == 1))
		return err_set(e, ERR_USAGE,
		    "node conflicts: --clear and a name go together");
	if (o->clear) {
		if (conflicts_clear(context_registry(cx), argv[0], e) == -1)
			return -1;
		return report_done(cx, "Conflicts over %s are forgotten.",
		    argv[0]);
	}
	t = table_new(conflict_columns, nitems(conflict_columns));
	rv = conflicts_each(context_registry(cx), put_conflict, t, e);
	table_end(t);
	return rv;
}

static int
put_conflict(const struct join_request *q, void *arg)
{
	char fingerprint[FINGERPRINT_LEN + 1], at[32];
	struct table *t = arg;

	key_fingerprint(q->key, fingerprint);
	clock_format_utc(q->at_ms, at, sizeof(at));
	table_put(t, q->name);
	table_put(t, fingerprint);
	table_put(t, q->addr);
	table_put(t, at);
	table_put(t, q->copied ? "copied key" : "another key");
	return 0;
}
