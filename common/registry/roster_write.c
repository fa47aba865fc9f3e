/* roster_write.c: a roster from the registry; see roster.h. */
#include "common/registry/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/base/io.h"
#include "common/registry/certs.h"
#include "common/registry/record.h"
#include "common/registry/roster_form.h"

#define WRITE_BUFFER 65536

/* The file so far: what is buffered and the hash of all of it. */
struct body {
	int fd;
	crypto_generichash_state hash;
	size_t used;
	struct err *e;
	char buf[WRITE_BUFFER];
};

static int catch_up(struct registry *, const uint8_t *secret, const char *path,
    struct err *);
static int write_all(struct registry *, const uint8_t *secret, int64_t now_s,
    int fd, struct err *);
static int write_body(struct registry *, struct body *, int64_t now_s,
    struct err *);
static int put_record(struct body *, json_t *take);
static int put(const char *bytes, size_t size, void *body);
static int flush(struct body *);
static int put_node(const struct node *, void *body);
static int put_role(const struct role *, void *body);
static int put_operator(const struct operator_row *, void *body);
static int put_site(const struct site *, void *body);
static int put_site_cert(const struct site_cert *, void *body);
static int put_revoked(uint64_t serial, int64_t not_after_s, void *body);
static int put_settings(struct registry *, struct body *, struct err *);

int
roster_write(struct registry *r, const uint8_t *secret, int64_t now_s,
    const char *path, struct err *e)
{
	struct io_replacement f;
	int rv;

	if (catch_up(r, secret, path, e) == -1 || registry_snapshot(r, e) == -1)
		return -1;
	if ((rv = io_replace_begin(&f, path, e)) == 0)
		rv = write_all(r, secret, now_s, f.fd, e);
	registry_snapshot_end(r);
	if (rv == 0)
		return io_replace_commit(&f, 0600, e);
	io_replace_abort(&f);
	return -1;
}

/* A registry restored from a backup is behind what was signed from it: no
 * node would take its next roster. */
static int
catch_up(struct registry *r, const uint8_t *secret, const char *path,
    struct err *e)
{
	uint8_t authority[KEY_SIZE];
	struct roster *present;
	struct err ignored;
	int64_t mine;
	int rv = 0;

	if (registry_revision(r, &mine, e) == -1)
		return -1;
	crypto_sign_ed25519_sk_to_pk(authority, secret);
	if ((present = roster_open(path, authority, &ignored)) == NULL)
		return 0;
	if (strcmp(roster_cluster_uuid(present), registry_cluster_uuid(r)) ==
		0 &&
	    roster_revision(present) > mine)
		rv = registry_advance(r, roster_revision(present), e);
	roster_close(present);
	return rv;
}

static int
write_all(struct registry *r, const uint8_t *secret, int64_t now_s, int fd,
    struct err *e)
{
	uint8_t hash[crypto_generichash_BYTES], message[ROSTER_MESSAGE_MAX];
	struct roster_head h = { .signed_at_s = now_s };
	char line[ROSTER_HEAD_MAX];
	struct body *b;
	size_t len;
	int rv;

	if (registry_revision(r, &h.revision, e) == -1)
		return -1;
	snprintf(h.cluster_uuid, sizeof(h.cluster_uuid), "%s",
	    registry_cluster_uuid(r));
	/* The signature's place is kept free until the body is known. */
	len = roster_head_format(&h, line);
	/* The hash state has an alignment of its own. */
	if ((b = aligned_alloc(_Alignof(struct body), sizeof(*b))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	b->fd = fd;
	b->used = 0;
	b->e = e;
	crypto_generichash_init(&b->hash, NULL, 0, sizeof(hash));
	if ((rv = io_write_n(fd, line, len)) == -1)
		err_errno(e, ERR_LOCAL, "cannot write the roster");
	else
		rv = write_body(r, b, now_s, e);
	if (rv == 0)
		rv = flush(b);
	crypto_generichash_final(&b->hash, hash, sizeof(hash));
	free(b);
	if (rv != 0)
		return -1;
	crypto_sign_detached(h.signature, NULL, message,
	    roster_message(&h, hash, message), secret);
	len = roster_head_format(&h, line);
	if (lseek(fd, 0, SEEK_SET) == -1 || io_write_n(fd, line, len) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write the roster");
	return 0;
}

/* Sites last and nodes early: who looks for a node or a revocation may stop
 * before the bulk. */
static int
write_body(struct registry *r, struct body *b, int64_t now_s, struct err *e)
{
	if (put_record(b,
		json_pack("{s:s, s:s}", "t", "cluster", "name",
		    registry_cluster_name(r))) != 0 ||
	    put_settings(r, b, e) != 0 || roles_each(r, put_role, b, e) != 0 ||
	    nodes_each(r, put_node, b, e) != 0 ||
	    certs_revoked(r, now_s, put_revoked, b, e) != 0 ||
	    operators_each(r, put_operator, b, e) != 0)
		return -1;
	if (sites_each(r, put_site, b, e) != 0)
		return -1;
	return site_certs_each(r, NULL, put_site_cert, b, e);
}

static int
put_settings(struct registry *r, struct body *b, struct err *e)
{
	char text[OPTION_TEXT_MAX];
	struct settings s;

	if (settings_load(r, &s, e) == -1)
		return -1;
	for (size_t i = 0; i < settings_table.n; i++) {
		const struct option *o = &settings_table.rows[i];

		if (option_is_default(o, &s))
			continue;
		option_text(o, &s, text);
		if (put_record(b,
			json_pack("{s:s, s:s, s:s}", "t", "setting", "key",
			    o->name, "value", text)) == -1)
			return -1;
	}
	return 0;
}

static int
put_node(const struct node *n, void *body)
{
	return put_record(body, record_from_node(n, RECORD_ROSTER));
}

static int
put_role(const struct role *role, void *body)
{
	return put_record(body, record_from_role(role, RECORD_ROSTER));
}

static int
put_operator(const struct operator_row *op, void *body)
{
	return put_record(body, record_from_operator(op, RECORD_ROSTER));
}

static int
put_site(const struct site *s, void *body)
{
	return put_record(body, record_from_site(s, RECORD_ROSTER));
}

static int
put_site_cert(const struct site_cert *c, void *body)
{
	return put_record(body, record_from_site_cert(c, RECORD_ROSTER));
}

static int
put_revoked(uint64_t serial, int64_t not_after_s, void *body)
{
	return put_record(body,
	    json_pack("{s:s, s:I, s:I}", "t", "revoked", "serial",
		(json_int_t)serial, "not_after", (json_int_t)not_after_s));
}

/* Takes the record; NULL stands for no memory to make it. */
static int
put_record(struct body *b, json_t *take)
{
	int rv;

	if (take == NULL)
		return err_set(b->e, ERR_LOCAL, "out of memory");
	b->e->code = ERR_NONE;
	rv = json_dump_callback(take, put, b, JSON_COMPACT);
	if (rv == -1 && b->e->code == ERR_NONE)
		err_set(b->e, ERR_LOCAL, "out of memory");
	if (rv == 0)
		rv = put("\n", 1, b);
	json_decref(take);
	return rv;
}

static int
put(const char *bytes, size_t size, void *arg)
{
	struct body *b = arg;

	while (size > 0) {
		size_t n = sizeof(b->buf) - b->used;

		if (n > size)
			n = size;
		memcpy(b->buf + b->used, bytes, n);
		b->used += n;
		bytes += n;
		size -= n;
		if (b->used == sizeof(b->buf) && flush(b) == -1)
			return -1;
	}
	return 0;
}

static int
flush(struct body *b)
{
	crypto_generichash_update(&b->hash, (const uint8_t *)b->buf, b->used);
	if (io_write_n(b->fd, b->buf, b->used) == -1)
		return err_errno(b->e, ERR_LOCAL, "cannot write the roster");
	b->used = 0;
	return 0;
}
