/* order_log.c: see order_log.h. */
#include "clusterctl/order_log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/output.h"
#include "common/audit/audit.h"

static json_t *origin(void);
static json_t *classes(struct fanout *);

int
order_log_begin(struct context *cx, const char *verb, const struct targets *t,
    struct order *o, struct err *e)
{
	char path[PATH_MAX];

	uuid_make(o->id);
	state_path(context_state(cx), STATE_AUDIT_OPERATOR, path);
	if (audit_append(path,
		json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:I}", "event",
		    "order", "id", o->id, "operator",
		    context_operator(cx)->name, "from", origin(), "verb", verb,
		    "typed", context_typed(cx), "nodes", t->folded, "count",
		    (json_int_t)t->n),
		e) == -1)
		return err_wrap(e, "the order was not given");
	return 0;
}

void
order_log_end(struct context *cx, const struct order *o, struct fanout *f,
    int exit_status)
{
	char path[PATH_MAX];
	struct err e;

	state_path(context_state(cx), STATE_AUDIT_OPERATOR, path);
	if (audit_append_soon(path,
		json_pack("{s:s, s:s, s:i, s:o}", "event", "result", "id",
		    o->id, "exit", exit_status, "classes", classes(f)),
		&e) == -1)
		output_note("the result is not in the audit log: %s", e.text);
}

void
order_log_change(struct context *cx, int64_t revision)
{
	char path[PATH_MAX];
	struct err e;

	state_path(context_state(cx), STATE_AUDIT_OPERATOR, path);
	if (audit_append(path,
		json_pack("{s:s, s:s, s:o, s:s, s:I}", "event", "change", "who",
		    context_actor(cx), "from", origin(), "typed",
		    context_typed(cx), "revision", (json_int_t)revision),
		&e) == -1)
		output_note("the change is not in the audit log: %s", e.text);
}

/* Where the operator sits: account, terminal, and the other end of ssh. */
static json_t *
origin(void)
{
	const char *ssh = getenv("SSH_CONNECTION"), *tty;
	json_t *o = json_pack("{s:i}", "uid", (int)getuid());
	char host[128] = "";

	if (gethostname(host, sizeof(host) - 1) == 0)
		json_object_set_new(o, "host", json_string(host));
	tty = ttyname(STDERR_FILENO);
	if (tty != NULL)
		json_object_set_new(o, "tty", json_string(tty));
	if (ssh != NULL)
		json_object_set_new(o, "ssh",
		    json_stringn(ssh, strcspn(ssh, " ")));
	return o;
}

/* {"ok": "web[1-2]", "failed": "web3"} */
static json_t *
classes(struct fanout *f)
{
	json_t *o = json_object();
	struct err e;

	for (int c = OUTCOME_OK; c < N_OUTCOMES; c++) {
		struct nodeset *set = nodeset_new();
		char *text = NULL;

		for (size_t i = 0; set != NULL && i < fanout_n(f); i++) {
			struct task *t = fanout_task(f, i);

			if ((int)t->result.outcome == c)
				nodeset_add(set, t->node->name, &e);
		}
		if (set != NULL && nodeset_count(set) > 0 &&
		    nodeset_fold(set, ",", &text, &e) == 0)
			json_object_set_new(o, outcome_word(c),
			    json_string(text));
		free(text);
		nodeset_free(set);
	}
	return o;
}
