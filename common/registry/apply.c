/* apply.c: a registry made to match a JSON text; see export.h. */
#include "common/registry/apply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/registry/export.h"
#include "common/registry/operators.h"
#include "common/registry/record.h"
#include "common/registry/roles.h"
#include "common/registry/settings.h"

typedef int apply_fn(struct apply *, const json_t *, struct err *);

static apply_fn check_format, apply_settings, apply_roles, apply_operators,
    prune_roles;
static int apply_all(struct apply *, const json_t *, struct err *);
static int index_names(const char *what, const json_t *list, json_t *index,
    struct err *);
static int apply_operator(struct apply *, const struct operator_row *,
    struct err *);
static bool same_grants(const struct operator_row *,
    const struct operator_row *);

/* In this order: what others refer to comes first, and goes last. */
static const struct {
	const char *member;
	apply_fn *apply;
} members[] = {
	{ "format", check_format },
	{ "settings", apply_settings },
	{ "roles", apply_roles },
	{ "nodes", apply_nodes },
	{ "operators", apply_operators },
	{ "sites", apply_sites },
	{ "site_certs", apply_site_certs },
	{ "roles", prune_roles },
};

int
registry_apply(struct registry *r, const char *json, size_t size, bool dry_run,
    void (*tell)(const char *line, void *arg), void *arg, size_t *n_changes,
    struct err *e)
{
	struct apply a = { .r = r, .tell = tell, .arg = arg };
	json_t *o = json_parse_object(json, size, EXPORT_SIZE_MAX, e);
	int rv;

	if (o == NULL)
		return err_set(e, ERR_USAGE, "%s", e->text);
	if ((rv = registry_begin(r, e, "apply an export")) == 0) {
		rv = apply_all(&a, o, e);
		/* 1 undoes it all, and is no failure. */
		rv = registry_end(r, rv == 0 && dry_run ? 1 : rv, e);
	}
	json_decref(o);
	if (rv == -1)
		return -1;
	*n_changes = a.n_changes;
	return 0;
}

void
apply_tell(struct apply *a, const char *fmt, ...)
{
	char line[OPTION_TEXT_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	a->tell(line, a->arg);
	a->n_changes++;
}

int
apply_prune(struct apply *a, const struct apply_kind *kind, const json_t *list,
    struct err *e)
{
	struct apply_gone gone = { json_object(), json_array(), e };
	json_t *name;
	size_t i;
	int rv;

	rv = index_names(kind->what, list, gone.index, e);
	if (rv == 0)
		rv = kind->walk(a->r, &gone, e);
	json_array_foreach (gone.names, i, name) {
		if (rv == -1)
			break;
		apply_tell(a, "remove %s %s", kind->what,
		    json_string_value(name));
		rv = kind->remove(a->r, json_string_value(name), e);
	}
	json_decref(gone.index);
	json_decref(gone.names);
	return rv;
}

int
apply_note(struct apply_gone *gone, const char *name)
{
	if (json_object_get(gone->index, name) != NULL ||
	    json_array_append_new(gone->names, json_string(name)) == 0)
		return 0;
	return err_set(gone->e, ERR_LOCAL, "out of memory");
}

int
apply_options(struct apply *a, const struct option_table *t, const char *what,
    const char *name, const void *have, const void *want,
    int (*set)(struct registry *, const char *name, const char *option,
	const char *value, struct err *),
    struct err *e)
{
	char was[OPTION_TEXT_MAX], will[OPTION_TEXT_MAX];

	for (size_t i = 0; i < t->n; i++) {
		option_text(&t->rows[i], have, was);
		option_text(&t->rows[i], want, will);
		if (strcmp(was, will) == 0)
			continue;
		apply_tell(a, "set %s%s%s%s %.200s (was %.200s)", what, name,
		    *name != '\0' ? " " : "", t->rows[i].name, will, was);
		if (set(a->r, name, t->rows[i].name, will, e) == -1)
			return -1;
	}
	return 0;
}

static int
apply_all(struct apply *a, const json_t *o, struct err *e)
{
	for (size_t i = 0; i < nitems(members); i++) {
		const json_t *v = json_object_get(o, members[i].member);

		if (v != NULL && members[i].apply(a, v, e) == -1)
			return -1;
	}
	return 0;
}

static int
check_format(struct apply *a, const json_t *v, struct err *e)
{
	(void)a;
	if (json_is_string(v) &&
	    strcmp(json_string_value(v), EXPORT_FORMAT) == 0)
		return 0;
	return err_set(e, ERR_USAGE,
	    "this is no export that this version knows (format is "
	    "not " EXPORT_FORMAT ")");
}

static int
set_setting(struct registry *r, const char *name, const char *option,
    const char *value, struct err *e)
{
	(void)name;
	return settings_set(r, option, value, e);
}

static int
apply_settings(struct apply *a, const json_t *v, struct err *e)
{
	struct settings have, want;
	const char *key;
	json_t *value;

	if (!json_is_object(v))
		return err_set(e, ERR_USAGE, "\"settings\" is not an object");
	/* A mistyped key is no setting left alone. */
	json_object_foreach ((json_t *)v, key, value)
		if (option_find(&settings_table, key, e) == NULL)
			return -1;
	if (settings_load(a->r, &have, e) == -1 ||
	    option_from_json(&settings_table, &want, v, e) == -1)
		return -1;
	return apply_options(a, &settings_table, "", "", &have, &want,
	    set_setting, e);
}

static int
apply_roles(struct apply *a, const json_t *list, struct err *e)
{
	struct role have, want;
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (record_to_role(item, &want, e) == -1)
			return -1;
		if (roles_get(a->r, want.name, &have, e) == -1) {
			if (e->code != ERR_NO_TARGET)
				return -1;
			apply_tell(a, "add role %s", want.name);
			if (roles_add(a->r, want.name, e) == -1 ||
			    roles_get(a->r, want.name, &have, e) == -1)
				return -1;
		}
		if (apply_options(a, &role_options, "role ", want.name, &have,
			&want, roles_set, e) == -1)
			return -1;
	}
	return 0;
}

static int
note_role(const struct role *role, void *gone)
{
	return apply_note(gone, role->name);
}

static int
walk_roles(struct registry *r, struct apply_gone *gone, struct err *e)
{
	return roles_each(r, note_role, gone, e);
}

static int
prune_roles(struct apply *a, const json_t *list, struct err *e)
{
	static const struct apply_kind kind = { "role", walk_roles,
		roles_remove };

	return apply_prune(a, &kind, list, e);
}

static int
note_operator(const struct operator_row *op, void *gone)
{
	return apply_note(gone, op->name);
}

static int
walk_operators(struct registry *r, struct apply_gone *gone, struct err *e)
{
	return operators_each(r, note_operator, gone, e);
}

static int
apply_operators(struct apply *a, const json_t *list, struct err *e)
{
	static const struct apply_kind kind = { "operator", walk_operators,
		operators_revoke };
	struct operator_row want;
	int64_t before, after;
	json_t *item;
	size_t i;

	if (operators_count_full(a->r, &before, e) == -1 ||
	    apply_prune(a, &kind, list, e) == -1)
		return -1;
	json_array_foreach (list, i, item)
		if (record_to_operator(item, &want, e) == -1 ||
		    apply_operator(a, &want, e) == -1)
			return -1;
	if (operators_count_full(a->r, &after, e) == -1)
		return -1;
	if (before > 0 && after == 0)
		return err_set(e, ERR_USAGE,
		    "no operator would be left who may do everything; keep or "
		    "add one with the grant *");
	return 0;
}

static int
apply_operator(struct apply *a, const struct operator_row *want, struct err *e)
{
	const char *grants[GRANTS_MAX];
	struct operator_row have;

	for (size_t i = 0; i < want->n_grants; i++)
		grants[i] = want->grants[i];
	if (operators_get(a->r, want->name, &have, e) == -1) {
		if (e->code != ERR_NO_TARGET)
			return -1;
		apply_tell(a, "add operator %s", want->name);
		return operators_add(a->r, want->name, grants, want->n_grants,
		    want->until_s, e);
	}
	if (same_grants(&have, want))
		return 0;
	apply_tell(a, "set operator %s to %zu grant(s) (was %zu)", want->name,
	    want->n_grants, have.n_grants);
	return operators_set(a->r, want->name, grants, want->n_grants,
	    want->until_s, e);
}

static bool
same_grants(const struct operator_row *a, const struct operator_row *b)
{
	if (a->n_grants != b->n_grants || a->until_s != b->until_s)
		return false;
	for (size_t i = 0; i < a->n_grants; i++)
		if (strcmp(a->grants[i], b->grants[i]) != 0)
			return false;
	return true;
}

static int
index_names(const char *what, const json_t *list, json_t *index, struct err *e)
{
	json_t *item;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, ERR_USAGE, "the %ss are not a list", what);
	json_array_foreach (list, i, item) {
		const char *name =
		    json_string_value(json_object_get(item, "name"));

		if (name == NULL)
			return err_set(e, ERR_USAGE, "%s %zu has no name", what,
			    i + 1);
		if (json_object_get(index, name) != NULL)
			return err_set(e, ERR_USAGE, "%s %.80s is there twice",
			    what, name);
		if (json_object_set(index, name, item) == -1)
			return err_set(e, ERR_LOCAL, "out of memory");
	}
	return 0;
}
