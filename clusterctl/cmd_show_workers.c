/* cmd_show_workers.c: show_workers: the processes of the proxies. */
#include "clusterctl/command.h"

#include "clusterctl/json_table.h"
#include "clusterctl/proxies.h"
#include "clusterctl/watch.h"
#include "common/base/io.h"

struct workers_opts {
	struct watch_opts watch;
};

static const struct opt_set workers_sets[] = { WATCH_OPTS(
    struct workers_opts) };

static const struct json_column columns[] = {
	{ "PROXY", "proxy", CELL_TEXT },
	{ "PID", "pid", CELL_NUMBER },
	{ "STATE", "state", CELL_STATE },
	{ "SINCE", "since_ms", CELL_AGE },
	{ "SILENT", "silent_ms", CELL_AGE },
	{ "CLIENTS", "clients", CELL_NUMBER },
	{ "ACTIVE", "active", CELL_NUMBER },
	{ "TUNNELS", "tunnels", CELL_NUMBER },
	{ "NODES", "node_connections", CELL_NUMBER },
	{ "QUEUED", "queued", CELL_NUMBER },
	{ "COLLECTING", "collecting", CELL_NUMBER },
	{ "DELIVERING", "delivering", CELL_NUMBER },
	{ "SPOOL", "spool_bytes", CELL_BYTES },
	{ "ACCEPTED", "accepted", CELL_NUMBER },
	{ "REQUESTS", "requests", CELL_NUMBER },
	{ "HANDSHAKES", "handshakes", CELL_NUMBER },
	{ "RESUMED", "resumed", CELL_NUMBER },
	{ "FAILED", "handshakes_failed", CELL_NUMBER },
	{ "LOST LINES", "log_dropped", CELL_NUMBER },
	{ "CPU S", "cpu_s", CELL_SECONDS },
	{ "MEMORY", "rss_kb", CELL_KB },
	{ "REVISION", "revision", CELL_NUMBER },
};

static int run(struct context *, const void *, int, char **, struct err *);
static int show(struct context *, const void *, struct err *);
static void answer(const char *proxy, json_t *, void *);
static int before(json_t *, json_t *);

const struct command cmd_show_workers = {
	.name = "show_workers",
	.usage = "[options]",
	.summary = "the worker processes of the proxies",
	.about =
	    "A worker that has been SILENT for more than two seconds "
	    "hangs.  Just now:\nconnections of CLIENTS, those with an "
	    "ACTIVE request, TUNNELS (WebSockets),\nconnections to NODES, "
	    "requests QUEUED for a place at one, COLLECTING their body,\n"
	    "DELIVERING their answer to a slow client, and bodies in the "
	    "SPOOL.  So far:\nconnections ACCEPTED, REQUESTS, TLS "
	    "HANDSHAKES, those of them RESUMED, and those\nthat FAILED; "
	    "LOST LINES of the access log.  REVISION is the registry's, as "
	    "the\nworker knows it.\n",
	.section = SECTION_SITES,
	.needs = NEEDS_CLUSTER,
	.sets = workers_sets,
	.n_sets = nitems(workers_sets),
	.opts_size = sizeof(struct workers_opts),
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	const struct workers_opts *o = opts;

	(void)argc;
	(void)argv;
	return watch_run(cx, &o->watch, show, NULL, e);
}

static int
show(struct context *cx, const void *arg, struct err *e)
{
	struct json_table *t = json_table_new(columns, nitems(columns), before);
	json_t *question = json_pack("{s:s}", "ask", "workers");
	struct proxies p;
	int rv;

	(void)arg;
	rv = proxies_ask(cx, question, false, answer, t, &p, e);
	json_table_end(t);
	json_decref(question);
	return rv == -1 ? -1 : proxies_status(&p, e);
}

static void
answer(const char *proxy, json_t *o, void *arg)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(o, "workers"), i, row) {
		json_object_set_new(row, "proxy", json_string(proxy));
		json_table_add(arg, json_incref(row));
	}
}

static int
before(json_t *a, json_t *b)
{
	int c = json_compare_text(a, b, "proxy");

	return c != 0 ? c : json_compare_most(b, a, "pid");
}
