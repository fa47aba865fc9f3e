/* cmd_approve.c: admits or turns away machines that wait. */
#include "clusterctl/command.h"

#include <stdbool.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "common/net/cert.h"
#include "common/registry/tokens.h"

static int run_approve(struct context *, const void *, int, char **,
    struct err *);
static int run_reject(struct context *, const void *, int, char **,
    struct err *);
static int find_request(const struct join_request *, void *arg);

const struct command cmd_approve = {
	.name = "approve",
	.usage = "NAME",
	.summary = "let a waiting machine in",
	.about = "Compare the fingerprint with the one that nodeagent join "
		 "shows on the machine\n(clusterctl nodes --pending).\n",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = 1,
	.run = run_approve,
};

const struct command cmd_reject = {
	.name = "reject",
	.usage = "NAME",
	.summary = "turn a waiting machine away",
	.section = SECTION_NODES,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = 1,
	.run = run_reject,
};

struct wanted {
	const char *name;
	char fingerprint[FINGERPRINT_LEN + 1];
};

static int
run_approve(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	struct wanted w = { .name = argv[0] };
	int rv;

	(void)opts;
	(void)argc;
	/* One change: the fingerprint shown is that of the one let in. */
	if (registry_begin(r, e, "approve %s", argv[0]) == -1)
		return -1;
	rv = pending_each(r, find_request, &w, e);
	if (rv != -1)
		rv = pending_approve(r, argv[0], e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	return report_done(cx, "%s (%s) is let in.", argv[0], w.fingerprint);
}

static int
run_reject(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	(void)argc;
	if (pending_reject(context_registry(cx), argv[0], e) == -1)
		return -1;
	return report_done(cx, "%s is turned away.", argv[0]);
}

static int
find_request(const struct join_request *q, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(q->name, w->name) != 0)
		return 0;
	key_fingerprint(q->key, w->fingerprint);
	return 1;
}
