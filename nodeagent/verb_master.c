/* verb_master.c: the verbs that only a master answers: join, renew, seen. */
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/net/authority.h"
#include "common/registry/tokens.h"
#include "nodeagent/agent.h"
#include "nodeagent/journal.h"
#include "nodeagent/master.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

#define HOSTNAME_LEN 255

static int admit(struct session *, json_t *args, json_t **answer, struct err *);
static int require_master(const struct session *, struct err *);
static int parse_join(struct session *, json_t *args, struct join *,
    struct err *);
static int admit_node(struct agent *, const struct join *, json_t **answer,
    struct err *);
static int admit_operator(struct agent *, const struct join *, json_t **answer,
    struct err *);
static json_t *joined(const struct agent *, const char *kind, const char *name,
    const char *uuid, const struct issued *);
static json_t *base64(const void *, size_t);

int
verb_join(struct session *s, json_t *args, struct err *e)
{
	struct agent *a = session_agent(s);
	json_t *answer;

	if (admit(s, args, &answer, e) == -1) {
		journal_denied(a->journal, s, "join", e);
		return -1;
	}
	/* One that waits for approval asks every other second: no event. */
	if (strcmp(json_string_value(json_object_get(answer, "status")),
		"joined") == 0)
		journal_note(a->journal, s, "join", answer);
	session_reply(s, answer);
	return 0;
}

int
verb_renew(struct session *s, json_t *args, struct err *e)
{
	struct agent *a = session_agent(s);
	const struct cert *peer = session_peer(s);
	struct issued issued;
	const uint8_t *secret;

	(void)args;
	if (require_master(s, e) == -1 ||
	    (secret = master_secret(a->master, e)) == NULL)
		return -1;
	if (peer->kind == CERT_NODE) {
		if (master_renew_node(a->master, peer->key, &issued, e) == -1)
			return -1;
	} else if (issue_operator(master_registry(a->master), peer->name,
		       peer->key, secret, clock_wall_ms() / 1000, &issued,
		       e) == -1)
		return -1;
	session_reply(s,
	    json_pack("{s:o}", "cert", base64(issued.bytes, issued.size)));
	return 0;
}

int
verb_seen(struct session *s, json_t *args, struct err *e)
{
	(void)args;
	if (require_master(s, e) == -1)
		return -1;
	session_reply(s, master_sights(session_agent(s)->master));
	return 0;
}

static int
admit(struct session *s, json_t *args, json_t **answer, struct err *e)
{
	struct agent *a = session_agent(s);
	struct token_row token;
	struct join join;

	if (require_master(s, e) == -1 || master_secret(a->master, e) == NULL ||
	    parse_join(s, args, &join, e) == -1 ||
	    tokens_get(master_registry(a->master), join.token_id, &token, e) ==
		-1)
		return -1;
	secret_wipe(token.psk, sizeof(token.psk));
	return token.kind == HOLDER_NODE ? admit_node(a, &join, answer, e) :
					   admit_operator(a, &join, answer, e);
}

static int
require_master(const struct session *s, struct err *e)
{
	const struct agent *a = session_agent(s);

	if (a->master != NULL)
		return 0;
	return err_set(e, ERR_DENIED,
	    "%s does not hold the registry: ask the master %s", a->view.name,
	    a->view.n_masters > 0 ? a->view.masters[0].name : "");
}

static int
parse_join(struct session *s, json_t *args, struct join *j, struct err *e)
{
	struct channel *ch = session_channel(s);
	int64_t port;

	memset(j, 0, sizeof(*j));
	if (json_opt_string(args, "name", NAME_MAX_LEN, NULL, &j->name, e) ==
		-1 ||
	    json_opt_string(args, "address", ADDR_TEXT_MAX - 1, NULL,
		&j->address, e) == -1 ||
	    json_opt_int(args, "port", 1, 65535, PROTO_DEFAULT_PORT, &port,
		e) == -1 ||
	    json_opt_string(args, "hostname", HOSTNAME_LEN, "", &j->hostname,
		e) == -1 ||
	    json_opt_string(args, "version", NODE_VERSION_LEN, "", &j->version,
		e) == -1)
		return -1;
	j->port = (uint16_t)port;
	j->token_id = channel_join_id(ch);
	j->key = channel_peer_key(ch);
	j->peer = channel_addr(ch);
	j->now_ms = clock_wall_ms();
	return 0;
}

/* Two changes: a joiner that got no certificate because we were killed in
 * between comes again with the same token and key, and is known. */
static int
admit_node(struct agent *a, const struct join *j, json_t **answer,
    struct err *e)
{
	struct registry *r = master_registry(a->master);
	char fingerprint[FINGERPRINT_LEN + 1];
	enum join_status status;
	struct issued issued;
	struct node n;
	struct err ignored;

	if (join_node(r, j, &n, &status, e) == -1) {
		/* For a person to see: clusterctl node conflicts. */
		if (e->code == ERR_CONFLICT)
			(void)conflicts_note(r, j, &ignored);
		return -1;
	}
	if (status == JOIN_PENDING) {
		key_fingerprint(j->key, fingerprint);
		*answer = json_pack("{s:s, s:s}", "status", "pending",
		    "fingerprint", fingerprint);
		return 0;
	}
	if (issue_node(r, n.name, j->key, master_secret(a->master, e),
		j->now_ms / 1000, &issued, e) == -1)
		return -1;
	log_info("%s has joined", n.name);
	*answer = joined(a, "node", n.name, n.uuid, &issued);
	return 0;
}

static int
admit_operator(struct agent *a, const struct join *j, json_t **answer,
    struct err *e)
{
	struct registry *r = master_registry(a->master);
	struct issued issued;
	struct operator_row op;

	if (join_operator(r, j, &op, e) == -1 ||
	    issue_operator(r, op.name, j->key, master_secret(a->master, e),
		j->now_ms / 1000, &issued, e) == -1)
		return -1;
	log_info("operator %s has joined", op.name);
	*answer = joined(a, "operator", op.name, "", &issued);
	return 0;
}

static json_t *
joined(const struct agent *a, const char *kind, const char *name,
    const char *uuid, const struct issued *issued)
{
	char authority[2 * KEY_SIZE + 1];

	sodium_bin2hex(authority, sizeof(authority), a->identity.authority,
	    KEY_SIZE);
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:s}", "status",
	    "joined", "kind", kind, "name", name, "uuid", uuid, "cert",
	    base64(issued->bytes, issued->size), "authority", authority,
	    "cluster", registry_cluster_name(master_registry(a->master)));
}

static json_t *
base64(const void *bytes, size_t size)
{
	char text[2 * CERT_MAX];

	sodium_bin2base64(text, sizeof(text), bytes, size,
	    sodium_base64_VARIANT_ORIGINAL);
	return json_string(text);
}
