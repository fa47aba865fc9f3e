/*
 * fuzz_roster.c: rosters: as they come (the signature will not fit), and with
 * a good signature over whatever body the input says.
 */
#include <sys/mman.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/registry/roster_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int
file_of(const void *head, size_t head_size, const uint8_t *body, size_t size)
{
	int fd = memfd_create("roster", MFD_CLOEXEC);

	if (fd == -1 || write(fd, head, head_size) != (ssize_t)head_size ||
	    write(fd, body, size) != (ssize_t)size)
		abort();
	return fd;
}

static int
see_node(const struct node *n, void *arg)
{
	(void)arg;
	return n->name[0] == '\0' || n->uuid[0] == '\0';
}

static int
see_role(const struct role *role, void *arg)
{
	(void)arg;
	return role->name[0] == '\0';
}

static int
see_site(const struct site *s, void *arg)
{
	(void)arg;
	return s->name[0] == '\0';
}

static int
see_site_cert(const struct site_cert *c, void *arg)
{
	(void)arg;
	return c->site[0] == '\0' || c->names[0] == '\0' ||
	    site_cert_covers(c->names, c->hosts, strcspn(c->hosts, " "));
}

static int
see_operator(const struct operator_row *op, void *arg)
{
	(void)arg;
	return op->name[0] == '\0';
}

static int
see_revoked(uint64_t serial, int64_t not_after_s, void *arg)
{
	(void)arg;
	return serial == 7 && not_after_s == 7;
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const uint8_t seed[crypto_sign_SEEDBYTES] = { 1 };
	static const char cluster[] = "{\"t\":\"cluster\",\"name\":\"c\"}\n";
	uint8_t pub[KEY_SIZE], secret[crypto_sign_SECRETKEYBYTES], *body;
	uint8_t hash[crypto_generichash_BYTES], message[ROSTER_MESSAGE_MAX];
	struct roster_head h = { .revision = 1, .signed_at_s = 2 };
	struct settings settings;
	char line[ROSTER_HEAD_MAX];
	struct roster *r;
	struct node n;
	struct err e;
	size_t n_body = sizeof(cluster) - 1 + size;

	if (sodium_init() == -1 ||
	    roster_open_fd(file_of("", 0, input, size), seed, &e) != NULL)
		abort();
	crypto_sign_seed_keypair(pub, secret, seed);
	memcpy(h.cluster_uuid, "8bcf1f88-7eb4-4ab1-87b3-2c1f0cf4e0f9", 37);
	if ((body = malloc(n_body)) == NULL)
		return 0;
	memcpy(body, cluster, sizeof(cluster) - 1);
	memcpy(body + sizeof(cluster) - 1, input, size);
	crypto_generichash(hash, sizeof(hash), body, n_body, NULL, 0);
	crypto_sign_detached(h.signature, NULL, message,
	    roster_message(&h, hash, message), secret);
	r = roster_open_fd(file_of(line, roster_head_format(&h, line), body,
			       n_body),
	    pub, &e);
	free(body);
	if (r == NULL)
		abort();
	roster_each_node(r, see_node, NULL, &e);
	roster_each_role(r, see_role, NULL, &e);
	roster_each_site(r, see_site, NULL, &e);
	roster_each_site_cert(r, see_site_cert, NULL, &e);
	roster_each_operator(r, see_operator, NULL, &e);
	roster_each_revoked(r, see_revoked, NULL, &e);
	roster_settings(r, &settings, &e);
	roster_get_node(r, "web1", &n, &e);
	roster_close(r);
	return 0;
}
