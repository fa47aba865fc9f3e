/* offer.c: see offer.h. */
#include "clusterctl/offer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "clusterctl/localagent.h"
#include "clusterctl/output.h"
#include "common/base/addr.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/identity.h"
#include "common/registry/nodes.h"

static int this_master(struct context *, struct token *, struct err *);
static void print_json(const struct offer *, const char *command);
static json_t *roles_json(const struct token_row *);

int
offer_make(struct context *cx, struct offer *o, int64_t ttl_ms, struct err *e)
{
	struct token t = { .kind = o->row.kind == HOLDER_OPERATOR ?
		    CERT_OPERATOR :
		    CERT_NODE };
	int rv = -1;

	if (this_master(cx, &t, e) == -1)
		return -1;
	randombytes_buf(t.id, sizeof(t.id));
	randombytes_buf(t.secret, sizeof(t.secret));
	o->row.created_ms = clock_wall_ms();
	o->row.expires_ms = o->row.created_ms + ttl_ms;
	t.not_after_s = o->row.expires_ms / 1000;
	memcpy(o->row.id, t.id, sizeof(o->row.id));
	token_psk(t.secret, o->row.psk);
	if (token_encode(&t, o->text, e) == 0)
		rv = tokens_add(context_registry(cx), &o->row, e);
	sodium_memzero(&t, sizeof(t));
	return rv;
}

void
offer_print(const struct context *cx, const struct offer *o,
    const char *command)
{
	char life[32];

	if (output_is_json())
		print_json(o, command);
	else
		printf("%s %s\n", command, o->text);
	if (output_is_tty() && !output_is_json()) {
		text_format_duration(o->row.expires_ms - o->row.created_ms,
		    life, sizeof(life));
		fflush(stdout);
		output_note("paste this line there within %s; it works %s",
		    life, o->row.uses == 1 ? "once" : "more than once");
	}
	if (!localagent_runs(context_state(cx)))
		output_note("nobody answers it yet: start this master's agent "
			    "(nodeagent run)");
}

void
offer_wipe(struct offer *o)
{
	sodium_memzero(o, sizeof(*o));
}

/* Where the joiner finds us, and by which key it knows that it is us. */
static int
this_master(struct context *cx, struct token *t, struct err *e)
{
	struct channel_identity id;
	struct node n;
	int rv = -1;

	/* An expired certificate is the agent's business, not the token's. */
	if (identity_load(context_state(cx), CERT_NODE, clock_wall_ms() / 1000,
		&id, NULL, e) == -1 &&
	    e->code != ERR_EXPIRED && e->code != ERR_NOT_YET)
		return -1;
	if (nodes_get_key(context_registry(cx), id.public, &n, e) == 0 &&
	    addr_parse(n.addr, n.agent_port, &t->addrs[0], e) == 0) {
		t->n_addrs = 1;
		memcpy(t->master_key, id.public, sizeof(t->master_key));
		rv = 0;
	}
	identity_wipe(&id);
	return rv;
}

static void
print_json(const struct offer *o, const char *command)
{
	const struct token_row *row = &o->row;
	char id[2 * TOKEN_ID_SIZE + 1], until[32];

	sodium_bin2hex(id, sizeof(id), row->id, sizeof(row->id));
	clock_format_utc(row->expires_ms, until, sizeof(until));
	output_json(json_pack("{s:s,s:s,s:s,s:s*,s:o,s:I,s:s,s:s*,s:b}",
	    "token", o->text, "command", command, "id", id, "name",
	    *row->name != '\0' ? row->name : NULL, "roles", roles_json(row),
	    "uses", (json_int_t)row->uses, "expires", until, "from",
	    *row->from != '\0' ? row->from : NULL, "approve", row->approve));
}

static json_t *
roles_json(const struct token_row *row)
{
	json_t *list = json_array();

	for (size_t i = 0; i < row->n_roles; i++)
		json_array_append_new(list, json_string(row->roles[i]));
	return list;
}
