/* authority.c: see authority.h. */
#include "common/net/authority.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"

#define SEAL_MAGIC	"muster-sealed-1\n"
#define SEAL_MAGIC_SIZE (sizeof(SEAL_MAGIC) - 1)

struct sealed {
	uint8_t magic[SEAL_MAGIC_SIZE];
	uint8_t salt[crypto_pwhash_SALTBYTES];
	uint8_t nonce[crypto_secretbox_NONCEBYTES];
	uint8_t box[AUTHORITY_SECRET_SIZE + crypto_secretbox_MACBYTES];
};
_Static_assert(sizeof(struct sealed) == 16 + 16 + 24 + 80,
    "bytes only, so that the struct is the file");

static int seal(const uint8_t *secret, const char *passphrase, struct sealed *,
    struct err *);
static int unseal(const struct state *, const struct sealed *,
    const char *passphrase, uint8_t *secret, struct err *);
static int derive(const uint8_t *salt, const char *passphrase,
    uint8_t key[crypto_secretbox_KEYBYTES], struct err *);
static int check_pair(const struct state *, const uint8_t *secret,
    struct err *);

void
authority_generate(uint8_t secret[AUTHORITY_SECRET_SIZE],
    uint8_t public[KEY_SIZE])
{
	crypto_sign_keypair(public, secret);
}

int
authority_store(const struct state *st,
    const uint8_t secret[AUTHORITY_SECRET_SIZE], const char *passphrase,
    struct err *e)
{
	char path[PATH_MAX];
	uint8_t public[KEY_SIZE];
	struct sealed s;

	crypto_sign_ed25519_sk_to_pk(public, secret);
	if (io_write_file(state_path(st, STATE_AUTHORITY_PUB, path), public,
		sizeof(public), 0644, e) == -1)
		return -1;
	state_path(st, STATE_AUTHORITY_KEY, path);
	if (passphrase == NULL)
		return io_write_file(path, secret, AUTHORITY_SECRET_SIZE, 0600,
		    e);
	if (seal(secret, passphrase, &s, e) == -1)
		return -1;
	return io_write_file(path, &s, sizeof(s), 0600, e);
}

int
authority_load(const struct state *st, const char *passphrase,
    uint8_t secret[AUTHORITY_SECRET_SIZE], struct err *e)
{
	uint8_t plain[AUTHORITY_SECRET_SIZE];
	struct sealed s;
	int rv = -1;

	/* The two forms differ in size, and a reader insists on the size. */
	if (state_read_secret(st, STATE_AUTHORITY_KEY, &s, sizeof(s), e) == 0)
		rv = unseal(st, &s, passphrase, plain, e);
	else
		rv = state_read_secret(st, STATE_AUTHORITY_KEY, plain,
		    sizeof(plain), e);
	if (rv == 0)
		rv = check_pair(st, plain, e);
	if (rv == 0)
		memcpy(secret, plain, sizeof(plain));
	sodium_memzero(plain, sizeof(plain));
	/* A short read has left a key in the clear in here. */
	sodium_memzero(&s, sizeof(s));
	return rv;
}

int
authority_load_public(const struct state *st, uint8_t public[KEY_SIZE],
    struct err *e)
{
	char path[PATH_MAX], *data;
	size_t size;

	if (io_read_file(state_path(st, STATE_AUTHORITY_PUB, path), KEY_SIZE,
		&data, &size, e) == -1)
		return -1;
	if (size == KEY_SIZE)
		memcpy(public, data, KEY_SIZE);
	free(data);
	if (size != KEY_SIZE)
		return err_set(e, ERR_CORRUPT,
		    "%s is damaged: %zu bytes, not %d", path, size, KEY_SIZE);
	return 0;
}

static int
seal(const uint8_t *secret, const char *passphrase, struct sealed *s,
    struct err *e)
{
	uint8_t key[crypto_secretbox_KEYBYTES];

	memcpy(s->magic, SEAL_MAGIC, SEAL_MAGIC_SIZE);
	randombytes_buf(s->salt, sizeof(s->salt));
	randombytes_buf(s->nonce, sizeof(s->nonce));
	if (derive(s->salt, passphrase, key, e) == -1)
		return -1;
	crypto_secretbox_easy(s->box, secret, AUTHORITY_SECRET_SIZE, s->nonce,
	    key);
	sodium_memzero(key, sizeof(key));
	return 0;
}

static int
unseal(const struct state *st, const struct sealed *s, const char *passphrase,
    uint8_t *secret, struct err *e)
{
	uint8_t key[crypto_secretbox_KEYBYTES];
	int rv;

	if (memcmp(s->magic, SEAL_MAGIC, SEAL_MAGIC_SIZE) != 0)
		return err_set(e, ERR_CORRUPT,
		    "%s/authority.key is damaged: no sealed key", st->dir);
	if (passphrase == NULL)
		return err_set(e, ERR_LOCKED,
		    "the authority key is under its passphrase (unlock it "
		    "with: clusterctl unlock)");
	if (derive(s->salt, passphrase, key, e) == -1)
		return -1;
	rv = crypto_secretbox_open_easy(secret, s->box, sizeof(s->box),
	    s->nonce, key);
	sodium_memzero(key, sizeof(key));
	if (rv == -1)
		return err_set(e, ERR_DENIED,
		    "wrong passphrase for the authority key");
	return 0;
}

static int
derive(const uint8_t *salt, const char *passphrase,
    uint8_t key[crypto_secretbox_KEYBYTES], struct err *e)
{
	if (crypto_pwhash(key, crypto_secretbox_KEYBYTES, passphrase,
		strlen(passphrase), salt, crypto_pwhash_OPSLIMIT_MODERATE,
		crypto_pwhash_MEMLIMIT_MODERATE,
		crypto_pwhash_ALG_ARGON2ID13) == -1)
		return err_set(e, ERR_LOCAL,
		    "not enough memory to derive a key from the passphrase "
		    "(256 MiB are needed)");
	return 0;
}

/* A key that was restored beside another cluster's authority.pub would sign
 * certificates that nobody accepts: better said at once. */
static int
check_pair(const struct state *st, const uint8_t *secret, struct err *e)
{
	uint8_t stored[KEY_SIZE], derived[KEY_SIZE], seed[32];
	uint8_t again[AUTHORITY_SECRET_SIZE];
	int same;

	if (authority_load_public(st, stored, e) == -1)
		return -1;
	crypto_sign_ed25519_sk_to_seed(seed, secret);
	crypto_sign_seed_keypair(derived, again, seed);
	same = sodium_memcmp(again, secret, sizeof(again)) == 0 &&
	    sodium_memcmp(derived, stored, sizeof(stored)) == 0;
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(again, sizeof(again));
	if (!same)
		return err_set(e, ERR_CORRUPT,
		    "%s/authority.key does not belong to authority.pub; "
		    "restore both from the same backup",
		    st->dir);
	return 0;
}
