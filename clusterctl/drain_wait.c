/* drain_wait.c: see drain_wait.h. */
#include "clusterctl/drain_wait.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clusterctl/outcome.h"
#include "clusterctl/output.h"
#include "clusterctl/progress.h"
#include "clusterctl/proxies.h"
#include "common/base/clock.h"

#define LOOK_EVERY_MS 100

/* One look at all proxies. */
struct look {
	const struct nodeset *set;
	int64_t revision;
	int64_t active;	 /* requests at these nodes */
	char where[240]; /* of one of them; or what holds us up */
	bool behind;	 /* a proxy does not know of the change yet */
};

static int look(struct context *, struct look *, struct proxies *,
    struct err *);
static void answer(const char *proxy, json_t *, void *);
static void count_row(struct look *, const char *proxy, json_t *row);

int
drain_wait(struct context *cx, const struct nodeset *set, int64_t revision,
    int64_t deadline_ms, struct err *e)
{
	int64_t end_ms = clock_mono_ms() + deadline_ms;

	for (;;) {
		struct look l = { .set = set, .revision = revision };
		struct proxies p;

		if (look(cx, &l, &p, e) == -1)
			return -1;
		if (p.interrupted)
			return outcome_exit_status(OUTCOME_CANCELLED);
		if (p.n + p.n_silent == 0)
			output_note("no proxy runs: nothing to wait for");
		if (l.active == 0 && !l.behind && p.n_silent == 0)
			return 0;
		if (clock_mono_ms() >= end_ms)
			return err_set(e,
			    p.n_silent > 0 ? ERR_UNREACHABLE : ERR_TIMEOUT,
			    l.active > 0 ?
				"still active: %lld request(s), such as %s" :
				"%lld request(s) are known of, but %s",
			    (long long)l.active,
			    p.n_silent > 0 ? "not every proxy answers" :
					     l.where);
		if (progress_possible())
			progress_show("%lld active", (long long)l.active);
		poll(NULL, 0, LOOK_EVERY_MS);
	}
}

static int
look(struct context *cx, struct look *l, struct proxies *p, struct err *e)
{
	json_t *question = json_pack("{s:s}", "ask", "nodes");
	int rv = proxies_ask(cx, question, true, answer, l, p, e);

	json_decref(question);
	return rv;
}

static void
answer(const char *proxy, json_t *o, void *arg)
{
	struct look *l = arg;
	json_t *row;
	size_t i;

	if (json_integer_value(json_object_get(o, "revision")) < l->revision) {
		l->behind = true;
		snprintf(l->where, sizeof(l->where),
		    "%.64s has not heard of the change", proxy);
	}
	json_array_foreach (json_object_get(o, "nodes"), i, row)
		count_row(l, proxy, row);
}

static void
count_row(struct look *l, const char *proxy, json_t *row)
{
	const char *node = json_string_value(json_object_get(row, "node"));
	const char *role = json_string_value(json_object_get(row, "role"));
	json_int_t n = json_integer_value(json_object_get(row, "active"));

	if (node == NULL || n <= 0 || !nodeset_has(l->set, node))
		return;
	l->active += n;
	snprintf(l->where, sizeof(l->where), "%lld at %.64s as %.32s by %.40s",
	    (long long)n, node, role != NULL ? role : "?", proxy);
}
