/* answer.c: what can be asked of a running proxy: see admin.h. */
#include "proxyd/admin/admin.h"

#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/name.h"
#include "proxyd/admin/report_certs.h"

#define TOP_MAX 10000

typedef json_t *answer_fn(const struct report *, json_t *request, struct err *);

static answer_fn answer_nodes, answer_workers, answer_sites, answer_limits,
    answer_status;

static const struct {
	const char *word;
	answer_fn *fn;
} answers[] = {
	{ "nodes", answer_nodes },
	{ "workers", answer_workers },
	{ "sites", answer_sites },
	{ "limits", answer_limits },
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
	json_object_set_new(out, "revision", json_integer(report_revision(r)));
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
	json_t *rows, *rest;
	int64_t top;
	bool owners;

	if (json_opt_int(request, "top", 1, TOP_MAX, TOP_MAX, &top, e) == -1 ||
	    json_opt_bool(request, "owners", false, &owners, e) == -1)
		return NULL;
	rows = report_sites(r, (size_t)top, owners, &rest);
	if (rows != NULL)
		return json_pack("{s:o s:o}", owners ? "owners" : "sites", rows,
		    "rest", rest);
	err_set(e, ERR_LOCAL, "out of memory for an answer");
	return NULL;
}

static json_t *
answer_limits(const struct report *r, json_t *request, struct err *e)
{
	const struct snap_site *site;
	const char *name;

	if (json_get_string(request, "site", HOST_MAX_LEN, &name, e) == -1)
		return NULL;
	site = snapshot_find(r->snapshot, name, strlen(name));
	if (site != NULL)
		return json_pack("{s:o}", "limits", report_limits(r, site));
	err_set(e, ERR_NO_TARGET, "there is no site %.80s here", name);
	return NULL;
}

static json_t *
answer_status(const struct report *r, json_t *request, struct err *e)
{
	(void)request;
	(void)e;
	return json_pack("{s:s s:i s:I s:I s:I s:s s:s s:o s:o s:o}", "version",
	    MUSTER_VERSION, "pid", (int)getpid(), "compiled",
	    (json_int_t)r->snapshot->head->revision, "n_sites",
	    (json_int_t)r->snapshot->head->n_sites, "upgrades_failed",
	    (json_int_t)r->notices->n_upgrades, "upgrade_trouble",
	    r->notices->upgrade, "settings_trouble", r->notices->settings,
	    "nodes", report_nodes(r), "workers", report_workers(r), "tls",
	    report_certs(r));
}
