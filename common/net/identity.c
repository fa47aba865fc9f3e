/* identity.c: see identity.h. */
#include "common/net/identity.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/net/authority.h"

static const struct {
	enum state_file key, cert;
	const char *missing;
} kinds[] = {
	[CERT_NODE] = { STATE_NODE_KEY, STATE_NODE_CERT,
	    "this machine is no node of a cluster yet (on a master: "
	    "clusterctl enroll; here: nodeagent join TOKEN)" },
	[CERT_OPERATOR] = { STATE_OPERATOR_KEY, STATE_OPERATOR_CERT,
	    "no operator's identity here (on a master: clusterctl operator "
	    "add NAME; here: clusterctl operator join TOKEN)" },
};

static int load_secret(const struct state *, enum cert_kind,
    struct channel_identity *, struct err *);
static int load_cert(const struct state *, enum cert_kind,
    struct channel_identity *, struct err *);

int
identity_key(const struct state *st, enum cert_kind kind,
    struct channel_identity *id, struct err *e)
{
	char path[PATH_MAX];

	memset(id, 0, sizeof(*id));
	if (state_has(st, kinds[kind].key))
		return load_secret(st, kind, id, e);
	randombytes_buf(id->secret, sizeof(id->secret));
	crypto_scalarmult_base(id->public, id->secret);
	if (io_write_file(state_path(st, kinds[kind].key, path), id->secret,
		sizeof(id->secret), 0600, e) == 0)
		return 0;
	identity_wipe(id);
	return -1;
}

int
identity_store(const struct state *st, enum cert_kind kind,
    const uint8_t *authority, const uint8_t *cert, size_t cert_size,
    struct err *e)
{
	char path[PATH_MAX];

	if (authority != NULL &&
	    io_write_file(state_path(st, STATE_AUTHORITY_PUB, path), authority,
		KEY_SIZE, 0644, e) == -1)
		return -1;
	return io_write_file(state_path(st, kinds[kind].cert, path), cert,
	    cert_size, 0644, e);
}

int
identity_load(const struct state *st, enum cert_kind kind, int64_t now_s,
    struct channel_identity *id, struct cert *c, struct err *e)
{
	struct cert checked;

	memset(id, 0, sizeof(*id));
	if (!state_has(st, kinds[kind].key) || !state_has(st, kinds[kind].cert))
		return err_set(e, ERR_LOCAL, "%s: %s", st->dir,
		    kinds[kind].missing);
	if (load_secret(st, kind, id, e) == -1 ||
	    load_cert(st, kind, id, e) == -1 ||
	    authority_load_public(st, id->authority, e) == -1) {
		identity_wipe(id);
		return -1;
	}
	if (cert_verify(id->cert, id->cert_size, id->authority, id->public,
		now_s, c != NULL ? c : &checked, e) == 0)
		return 0;
	if (e->code != ERR_EXPIRED && e->code != ERR_NOT_YET)
		identity_wipe(id);
	return -1;
}

void
identity_wipe(struct channel_identity *id)
{
	sodium_memzero(id, sizeof(*id));
}

static int
load_secret(const struct state *st, enum cert_kind kind,
    struct channel_identity *id, struct err *e)
{
	if (state_read_secret(st, kinds[kind].key, id->secret,
		sizeof(id->secret), e) == -1)
		return -1;
	crypto_scalarmult_base(id->public, id->secret);
	return 0;
}

static int
load_cert(const struct state *st, enum cert_kind kind,
    struct channel_identity *id, struct err *e)
{
	char path[PATH_MAX], *data;
	size_t size;

	if (io_read_file(state_path(st, kinds[kind].cert, path),
		sizeof(id->cert), &data, &size, e) == -1)
		return -1;
	memcpy(id->cert, data, size);
	id->cert_size = size;
	free(data);
	return 0;
}
