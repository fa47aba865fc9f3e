/* export.c: the registry as JSON; see export.h, and apply.c for the way
 * back. */
#include "common/registry/export.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/record.h"
#include "common/registry/settings.h"

struct output {
	FILE *f;
	bool first; /* of its list */
	struct err *e;
};

static int export_all(struct registry *, struct output *, struct err *);
static int export_settings(struct registry *, struct output *, struct err *);
static void begin_list(struct output *, const char *member);
static int put_record(struct output *, json_t *take);
static int put_role(const struct role *, void *output);
static int put_node(const struct node *, void *output);
static int put_operator(const struct operator_row *, void *output);
static int put_site(const struct site *, void *output);
static int put_site_cert(const struct site_cert *, void *output);

int
registry_export(struct registry *r, FILE *f, struct err *e)
{
	struct output out = { .f = f, .e = e };
	int rv;

	if (registry_snapshot(r, e) == -1)
		return -1;
	rv = export_all(r, &out, e);
	registry_snapshot_end(r);
	if (rv == 0 && (fflush(f) == EOF || ferror(f)))
		rv = err_errno(e, ERR_LOCAL, "cannot write the export");
	return rv;
}

static int
export_all(struct registry *r, struct output *out, struct err *e)
{
	fprintf(out->f, "{\"format\":\"%s\",\n\"cluster\":\"%s\",\n",
	    EXPORT_FORMAT, registry_cluster_name(r));
	if (export_settings(r, out, e) == -1)
		return -1;
	begin_list(out, "roles");
	if (roles_each(r, put_role, out, e) == -1)
		return -1;
	fputs("],\n", out->f);
	begin_list(out, "nodes");
	if (nodes_each(r, put_node, out, e) == -1)
		return -1;
	fputs("],\n", out->f);
	begin_list(out, "operators");
	if (operators_each(r, put_operator, out, e) == -1)
		return -1;
	fputs("],\n", out->f);
	begin_list(out, "sites");
	if (sites_each(r, put_site, out, e) == -1)
		return -1;
	fputs("],\n", out->f);
	begin_list(out, "site_certs");
	if (site_certs_each(r, NULL, put_site_cert, out, e) == -1)
		return -1;
	fputs("]}\n", out->f);
	return 0;
}

static int
export_settings(struct registry *r, struct output *out, struct err *e)
{
	struct settings s;
	json_t *o;
	int rv;

	if (settings_load(r, &s, e) == -1)
		return -1;
	if ((o = option_to_json(&settings_table, &s)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	fputs("\"settings\":", out->f);
	rv = json_dumpf(o, out->f, JSON_SORT_KEYS | JSON_INDENT(1));
	json_decref(o);
	fputs(",\n", out->f);
	return rv == -1 ? err_set(e, ERR_LOCAL, "cannot write the export") : 0;
}

static void
begin_list(struct output *out, const char *member)
{
	fprintf(out->f, "\"%s\":[", member);
	out->first = true;
}

static int
put_record(struct output *out, json_t *take)
{
	int rv;

	if (take == NULL)
		return err_set(out->e, ERR_LOCAL, "out of memory");
	fputs(out->first ? "\n" : ",\n", out->f);
	out->first = false;
	rv = json_dumpf(take, out->f, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(take);
	return rv == -1 ?
	    err_errno(out->e, ERR_LOCAL, "cannot write the export") :
	    0;
}

static int
put_role(const struct role *role, void *output)
{
	return put_record(output, record_from_role(role, RECORD_EXPORT));
}

static int
put_node(const struct node *n, void *output)
{
	return put_record(output, record_from_node(n, RECORD_EXPORT));
}

static int
put_operator(const struct operator_row *op, void *output)
{
	return put_record(output, record_from_operator(op, RECORD_EXPORT));
}

static int
put_site(const struct site *s, void *output)
{
	return put_record(output, record_from_site(s, RECORD_EXPORT));
}

static int
put_site_cert(const struct site_cert *c, void *output)
{
	return put_record(output, record_from_site_cert(c, RECORD_EXPORT));
}
