/* cmd_certs.c: certs: the certificates of all sites. */
#include "clusterctl/command.h"

#include "clusterctl/cert_table.h"
#include "clusterctl/view.h"
#include "common/base/clock.h"
#include "common/base/io.h"

struct certs_opts {
	int64_t expiring_ms;
};

static const struct opt certs_rows[] = {
	{ .name = "expiring",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 3650ULL * 86400 * 1000,
	    .offset = offsetof(struct certs_opts, expiring_ms),
	    .help = "only those that end within this time, or have ended" },
};

/* The table of one listing. */
struct listing {
	struct cert_table *table;
	int64_t until_s;
};

static int run(struct context *, const void *, int, char **, struct err *);
static int put(const struct site_cert *, void *arg);

const struct command cmd_certs = {
	.name = "certs",
	.usage = "[--expiring TIME]",
	.summary = "the certificates of all sites, and the days they have left",
	.examples = "  clusterctl certs --expiring 30d\n",
	.section = SECTION_SITES,
	.needs = NEEDS_VIEW,
	OPTS_OF(certs_rows, struct certs_opts),
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct certs_opts *o = opts;
	struct listing l = { cert_table_new(cx),
		o->expiring_ms == 0 ?
		    INT64_MAX :
		    (clock_wall_ms() + o->expiring_ms) / 1000 };
	int rv = view_each_site_cert(cx, NULL, put, &l, e);

	(void)argc;
	(void)argv;
	cert_table_end(l.table);
	return rv;
}

static int
put(const struct site_cert *c, void *arg)
{
	struct listing *l = arg;

	if (c->not_after_s <= l->until_s)
		cert_table_put(l->table, c);
	return 0;
}
