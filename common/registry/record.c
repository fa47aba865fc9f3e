/* record.c: see record.h. */
#include "common/registry/record.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/base/json.h"

static json_t *merge(json_t *head, json_t *tail);
static void add_item(json_t **array, json_t *item);
static void add_member(json_t **object, const char *name, json_t *value);
static const char *key_text(bool has_key, const uint8_t key[KEY_SIZE],
    char hex[2 * KEY_SIZE + 1]);
static int get_key(json_t *, bool *has_key, uint8_t key[KEY_SIZE],
    struct err *);
static int get_name(json_t *, char *name, size_t size, struct err *);
static int get_roles(json_t *, struct node *, struct err *);
static int get_options(json_t *, const struct option_table *, void *object,
    struct err *);

json_t *
record_from_node(const struct node *n, enum record_form form)
{
	json_t *head, *roles = json_array(), *ports = json_object();
	char hex[2 * KEY_SIZE + 1];

	for (size_t i = 0; i < n->n_roles; i++) {
		const struct node_role *role = &n->roles[i];

		add_item(&roles, json_string(role->name));
		if (role->port != 0)
			add_member(&ports, role->name,
			    json_integer(role->port));
	}
	head = form == RECORD_EXPORT ?
	    json_pack("{s:s}", "name", n->name) :
	    json_pack("{s:s, s:s, s:s, s:s*, s:I, s:I, s:I}", "t", "node",
		"name", n->name, "uuid", n->uuid, "key",
		key_text(n->has_key, n->key, hex), "serial",
		(json_int_t)n->serial, "cert_not_after_s",
		(json_int_t)n->cert_not_after_s, "state_since_ms",
		(json_int_t)n->state_since_ms);
	return merge(head,
	    json_pack("{s:s, s:i, s:o, s:o, s:s, s:I, s:I}", "addr", n->addr,
		"agent_port", (int)n->agent_port, "roles", roles, "ports",
		ports, "state", node_state_name(n->state), "weight",
		(json_int_t)n->weight, "maxconn", (json_int_t)n->maxconn));
}

json_t *
record_from_role(const struct role *role, enum record_form form)
{
	json_t *head = form == RECORD_EXPORT ?
	    json_pack("{s:s}", "name", role->name) :
	    json_pack("{s:s, s:s, s:b}", "t", "role", "name", role->name,
		"predefined", role->predefined);

	return merge(head,
	    json_pack("{s:o}", "options", option_to_json(&role_options, role)));
}

json_t *
record_from_operator(const struct operator_row *op, enum record_form form)
{
	json_t *head, *grants = json_array();
	char hex[2 * KEY_SIZE + 1];

	for (size_t i = 0; i < op->n_grants; i++)
		add_item(&grants, json_string(op->grants[i]));
	head = form == RECORD_EXPORT ?
	    json_pack("{s:s}", "name", op->name) :
	    json_pack("{s:s, s:s, s:s*, s:I, s:I, s:I}", "t", "operator",
		"name", op->name, "key", key_text(op->has_key, op->key, hex),
		"serial", (json_int_t)op->serial, "cert_not_after_s",
		(json_int_t)op->cert_not_after_s, "created_ms",
		(json_int_t)op->created_ms);
	return merge(head,
	    json_pack("{s:o, s:I}", "grants", grants, "until_s",
		(json_int_t)op->until_s));
}

json_t *
record_from_site(const struct site *s, enum record_form form)
{
	json_t *head, *aliases = json_array();

	for (const char *p = s->aliases; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		add_item(&aliases, json_stringn(p, n));
		p += n + (p[n] == ' ');
	}
	head = form == RECORD_EXPORT ?
	    json_pack("{s:s}", "name", s->name) :
	    json_pack("{s:s, s:s, s:I}", "t", "site", "name", s->name, "id",
		(json_int_t)s->id);
	return merge(head,
	    json_pack("{s:b, s:o, s:o}", "enabled", s->enabled, "aliases",
		aliases, "options", option_to_json(&site_options, s)));
}

int
record_to_node(json_t *o, struct node *n, struct err *e)
{
	const char *addr, *state, *uuid;
	int64_t port, serial, weight, maxconn;
	struct node out;
	char name[NAME_MAX_LEN + 1];

	if (get_name(o, name, sizeof(name), e) == -1 ||
	    name_check("node name", name, e) == -1)
		return -1;
	node_init(&out, name);
	weight = out.weight;
	maxconn = out.maxconn;
	if (json_opt_string(o, "uuid", UUID_LEN, out.uuid, &uuid, e) == -1 ||
	    json_get_string(o, "addr", ADDR_PLACE_MAX - 1, &addr, e) == -1 ||
	    json_opt_int(o, "agent_port", 0, 65535, 0, &port, e) == -1 ||
	    json_opt_int(o, "serial", 0, INT64_MAX, 0, &serial, e) == -1 ||
	    json_opt_int(o, "cert_not_after_s", 0, INT64_MAX, 0,
		&out.cert_not_after_s, e) == -1 ||
	    json_opt_int(o, "state_since_ms", 0, INT64_MAX, out.state_since_ms,
		&out.state_since_ms, e) == -1 ||
	    json_opt_int(o, "weight", 1, 256, weight, &out.weight, e) == -1 ||
	    json_opt_int(o, "maxconn", 0, 1000000, maxconn, &out.maxconn, e) ==
		-1 ||
	    json_opt_string(o, "state", 16, "up", &state, e) == -1 ||
	    node_state_parse(state, &out.state, e) == -1 ||
	    get_key(o, &out.has_key, out.key, e) == -1 ||
	    get_roles(o, &out, e) == -1 || addr_place(addr, out.addr, e) == -1)
		return err_wrap(e, "node %s", name);
	if (!uuid_valid(uuid))
		return err_set(e, ERR_PROTOCOL, "node %s: bad UUID", name);
	memmove(out.uuid, uuid, UUID_LEN + 1);
	out.agent_port = (uint16_t)port;
	out.serial = (uint64_t)serial;
	*n = out;
	return 0;
}

int
record_to_role(json_t *o, struct role *role, struct err *e)
{
	struct role out = { .predefined = false };

	if (get_name(o, out.name, sizeof(out.name), e) == -1 ||
	    name_check_role(out.name, e) == -1)
		return -1;
	if (json_opt_bool(o, "predefined", false, &out.predefined, e) == -1 ||
	    get_options(o, &role_options, &out, e) == -1)
		return err_wrap(e, "role %s", out.name);
	*role = out;
	return 0;
}

int
record_to_operator(json_t *o, struct operator_row *op, struct err *e)
{
	struct operator_row out = { .n_grants = 0 };
	json_t *grants, *item; /* borrowed */
	int64_t serial;
	size_t i;

	if (get_name(o, out.name, sizeof(out.name), e) == -1 ||
	    name_check("operator name", out.name, e) == -1)
		return -1;
	if (json_opt_strings(o, "grants", GRANTS_MAX, GRANT_LEN, &grants, e) ==
		-1 ||
	    json_opt_int(o, "until_s", 0, INT64_MAX, 0, &out.until_s, e) ==
		-1 ||
	    json_opt_int(o, "serial", 0, INT64_MAX, 0, &serial, e) == -1 ||
	    json_opt_int(o, "cert_not_after_s", 0, INT64_MAX, 0,
		&out.cert_not_after_s, e) == -1 ||
	    json_opt_int(o, "created_ms", 0, INT64_MAX, 0, &out.created_ms,
		e) == -1 ||
	    get_key(o, &out.has_key, out.key, e) == -1)
		return err_wrap(e, "operator %s", out.name);
	out.serial = (uint64_t)serial;
	json_array_foreach (grants, i, item) {
		if (grant_check(json_string_value(item), e) == -1)
			return err_wrap(e, "operator %s", out.name);
		snprintf(out.grants[out.n_grants++], GRANT_LEN + 1, "%s",
		    json_string_value(item));
	}
	*op = out;
	return 0;
}

int
record_to_site(json_t *o, struct site *s, struct err *e)
{
	json_t *aliases, *item; /* borrowed */
	char name[HOST_MAX_LEN + 1];
	struct site out;
	size_t i;

	if (get_name(o, name, sizeof(name), e) == -1 ||
	    name_check_host(name, false, e) == -1)
		return -1;
	site_init(&out, name);
	if (json_opt_bool(o, "enabled", true, &out.enabled, e) == -1 ||
	    json_opt_int(o, "id", 0, INT64_MAX, 0, &out.id, e) == -1 ||
	    json_opt_strings(o, "aliases", SITE_ALIASES_MAX, HOST_MAX_LEN,
		&aliases, e) == -1 ||
	    get_options(o, &site_options, &out, e) == -1)
		return err_wrap(e, "site %.80s", name);
	json_array_foreach (aliases, i, item) {
		if (site_add_alias(&out, json_string_value(item), e) == -1) {
			site_fini(&out);
			return err_wrap(e, "site %.80s", name);
		}
	}
	*s = out;
	return 0;
}

/* Memory may run out in any of these: a record that lacks a member must not
 * be signed or exported, so NULL goes through to the end. */
static json_t *
merge(json_t *head, json_t *tail)
{
	if (head != NULL &&
	    (tail == NULL || json_object_update(head, tail) == -1)) {
		json_decref(head);
		head = NULL;
	}
	json_decref(tail);
	return head;
}

static void
add_item(json_t **array, json_t *item)
{
	if (json_array_append_new(*array, item) == 0)
		return;
	json_decref(*array);
	*array = NULL;
}

static void
add_member(json_t **object, const char *name, json_t *value)
{
	if (json_object_set_new(*object, name, value) == 0)
		return;
	json_decref(*object);
	*object = NULL;
}

static const char *
key_text(bool has_key, const uint8_t key[KEY_SIZE], char hex[2 * KEY_SIZE + 1])
{
	return has_key ? sodium_bin2hex(hex, 2 * KEY_SIZE + 1, key, KEY_SIZE) :
			 NULL;
}

static int
get_key(json_t *o, bool *has_key, uint8_t key[KEY_SIZE], struct err *e)
{
	const char *hex;
	size_t size;

	if (json_opt_string(o, "key", 2 * KEY_SIZE, NULL, &hex, e) == -1)
		return -1;
	*has_key = hex != NULL;
	if (hex == NULL)
		return 0;
	if (sodium_hex2bin(key, KEY_SIZE, hex, strlen(hex), NULL, &size,
		NULL) == -1 ||
	    size != KEY_SIZE)
		return err_set(e, ERR_PROTOCOL, "field \"key\" is no key");
	return 0;
}

static int
get_name(json_t *o, char *name, size_t size, struct err *e)
{
	const char *text;

	if (json_get_string(o, "name", size - 1, &text, e) == -1)
		return -1;
	snprintf(name, size, "%s", text);
	return 0;
}

static int
get_roles(json_t *o, struct node *n, struct err *e)
{
	json_t *roles, *item, *ports = json_object_get(o, "ports");
	size_t i;

	if (json_opt_strings(o, "roles", NODE_ROLES_MAX, NAME_MAX_LEN, &roles,
		e) == -1)
		return -1;
	json_array_foreach (roles, i, item) {
		struct node_role *role = &n->roles[n->n_roles];
		int64_t port;

		snprintf(role->name, sizeof(role->name), "%s",
		    json_string_value(item));
		if (name_check_role(role->name, e) == -1 ||
		    json_opt_int(ports, role->name, 0, 65535, 0, &port, e) ==
			-1)
			return -1;
		role->port = (uint16_t)port;
		n->n_roles++;
	}
	return 0;
}

static int
get_options(json_t *o, const struct option_table *t, void *object,
    struct err *e)
{
	json_t *options = json_object_get(o, "options");

	if (options != NULL && !json_is_object(options))
		return err_set(e, ERR_PROTOCOL,
		    "field \"options\" is not an object");
	return option_from_json(t, object, options, e);
}
