/* answer.c: what can be asked of a running proxy: see admin.h. */
#include "proxyd/admin/admin.h"

#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/json.h"

#define TOP_MAX 1000000

typedef json_t *answer_fn(const struct report *, json_t *request, struct err *);

static answer_fn answer_nodes, answer_workers, answer_sites, answer_status;

static const struct {
	const char *word;
	answer_fn *fn;
} answers[] = {
	{ "nodes", answer_nodes },
	{ "workers", answer_workers },
	{ "sites", answer_sites },
	{ "status", answer_status },
};

json_t *
admin_answer(const struct report *r, json_t *request)
{
	const char *word;
	struct err e;
	json_t *out = NULL;

	if (json_get_string(request, "ask", 32, &word, &e) == 0) {
		err_set(&e, ERR_PROTOCOL, "nothing here answers '%s'", word);
		for (size_t i = 0; i < nitems(answers); i++)
			if (strcmp(answers[i].word, word) == 0)
				out = answers[i].fn(r, request, &e);
	}
	if (out == NULL)
		return json_pack("{s:b s:i s:s}", "ok", 0, "code", e.code,
		    "text", e.text);
	json_object_set_new(out, "ok", json_true());
	return out;
}

static json_t *
answer_nodes(const struct report *r, json_t *request, struct err *e)
{
	(void)request;
	(void)e;
	return json_pack("{s:o}", "nodes", report_nodes(r));
}

static json_t *
answer_workers(const struct report *r, json_t *request, struct err *e)
{
	(void)request;
	(void)e;
	return json_pack("{s:o}", "workers", report_workers(r));
}

static json_t *
answer_sites(const struct report *r, json_t *request, struct err *e)
{
	int64_t top;
	bool owners;

	if (json_opt_int(request, "top", 0, TOP_MAX, 0, &top, e) == -1 ||
	    json_opt_bool(request, "owners", false, &owners, e) == -1)
		return NULL;
	return owners ?
	    json_pack("{s:o}", "owners", report_owners(r, (size_t)top)) :
	    json_pack("{s:o}", "sites", report_sites(r, (size_t)top));
}

static json_t *
answer_status(const struct report *r, json_t *request, struct err *e)
{
	(void)request;
	(void)e;
	return json_pack("{s:s s:i s:I s:I s:o s:o}", "version", MUSTER_VERSION,
	    "pid", (int)getpid(), "revision",
	    (json_int_t)r->snapshot->head->revision, "n_sites",
	    (json_int_t)r->snapshot->head->n_sites, "nodes", report_nodes(r),
	    "workers", report_workers(r));
}
