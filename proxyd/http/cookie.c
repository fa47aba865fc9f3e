/* cookie.c: see cookie.h. */
#include "proxyd/http/cookie.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proxyd/balance/balance.h"

bool
cookie_find(const struct fields *fs, const char *base, const char *name,
    const char **value, size_t *len)
{
	const struct field *f = NULL;
	size_t name_len = strlen(name);

	while ((f = fields_find(fs, FIELD_COOKIE, f)) != NULL) {
		const char *p = base + f->value, *end = p + f->value_len;

		while (p < end) {
			const char *to = memchr(p, ';', (size_t)(end - p));

			to = to == NULL ? end : to;
			if ((size_t)(to - p) > name_len &&
			    memcmp(p, name, name_len) == 0 &&
			    p[name_len] == '=') {
				*value = p + name_len + 1;
				*len = (size_t)(to - *value);
				return true;
			}
			for (p = to; p < end && (*p == ';' || *p == ' '); p++)
				;
		}
	}
	return false;
}

static const char *
name_of(const struct snapshot *snap, const struct snap_role *r)
{
	return r->cookie.len > 0 ? snapshot_text(snap, r->cookie) : "MUSTER";
}

static void
value_of(const struct snap_node *n, char value[COOKIE_NODE_LEN + 1])
{
	snprintf(value, COOKIE_NODE_LEN + 1, "%016" PRIx64,
	    balance_hash(&n->id, sizeof(n->id)));
}

uint32_t
cookie_node(const struct fields *fs, const char *base,
    const struct snapshot *snap, const struct snap_role *r)
{
	const char *value;
	size_t len;

	if (!cookie_find(fs, base, name_of(snap, r), &value, &len) ||
	    len != COOKIE_NODE_LEN)
		return SNAP_NONE;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		char want[COOKIE_NODE_LEN + 1];

		value_of(snapshot_node(snap, r->first_node + i), want);
		if (memcmp(value, want, COOKIE_NODE_LEN) == 0)
			return r->first_node + i;
	}
	return SNAP_NONE;
}

void
cookie_set_node(char line[COOKIE_NODE_FIELD], const struct snapshot *snap,
    const struct snap_role *r, const struct snap_node *n)
{
	char value[COOKIE_NODE_LEN + 1];

	value_of(n, value);
	snprintf(line, COOKIE_NODE_FIELD,
	    "Set-Cookie: %.64s=%s; Path=/; HttpOnly; SameSite=Lax\r\n",
	    name_of(snap, r), value);
}
