/* traffic.c: see traffic.h. */
#include "clusterctl/traffic.h"

#include <stdio.h>

#include "clusterctl/json_table.h"
#include "common/base/io.h"

static const struct json_column columns[] = {
	{ "NODE", "node", CELL_TEXT },
	{ "ROLE", "role", CELL_TEXT },
	{ "PROXY", "proxy", CELL_TEXT },
	{ "STATE", "state", CELL_STATE },
	{ "WHY", "why", CELL_TEXT },
	{ "SINCE", "since_ms", CELL_AGE },
	{ "ACTIVE", "active", CELL_NUMBER },
	{ "QUEUED", "queued", CELL_NUMBER },
	{ "TOTAL", "total", CELL_NUMBER },
	{ "FAILED", "failed", CELL_NUMBER },
	{ "RETRIED", "retried", CELL_NUMBER },
	{ "AVERAGE", "latency_us", CELL_US },
	{ "P99", "p99_us", CELL_US },
	{ "REQ/S", "requests_s", CELL_RATE },
	{ "CONN/S", "connects_s", CELL_RATE },
};

static void answer(const char *proxy, json_t *, void *);
static int before(json_t *, json_t *);

int
traffic_show(struct context *cx, bool below, bool quiet, struct proxies *p,
    struct err *e)
{
	struct json_table *t = json_table_new(columns, nitems(columns), before);
	json_t *question = json_pack("{s:s}", "ask", "nodes");
	int rv = proxies_ask(cx, question, quiet, answer, t, p, e);

	if (below && json_table_n(t) > 0 && !output_is_json())
		putchar('\n');
	json_table_end(t);
	json_decref(question);
	return rv;
}

static void
answer(const char *proxy, json_t *o, void *arg)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(o, "nodes"), i, row) {
		json_object_set_new(row, "proxy", json_string(proxy));
		json_table_add(arg, json_incref(row));
	}
}

static int
before(json_t *a, json_t *b)
{
	static const char *const fields[] = { "node", "role", "proxy" };
	int c = 0;

	for (size_t i = 0; i < nitems(fields) && c == 0; i++)
		c = json_compare_text(a, b, fields[i]);
	return c;
}
