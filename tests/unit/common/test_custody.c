/* test_custody.c: keys, chains and staples on disk: modes, names, damage. */
#include "tests/unit/common/scratch.h"

#include <fcntl.h>

#include "common/base/io.h"
#include "common/custody/custody.h"
#include "common/custody/pkcs8.h"

static const char chain_text[] = "a chain";

#define P256                                                              \
	0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, \
	    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07

/* As short as a key can be; the last byte is its public half, the one with
 * `secret` its private one. */
#define KEY_DER(secret, public)                                               \
	{                                                                     \
		0x30, 0x28, 0x02, 0x01, 0x00, P256, 0x04, 0x0e, 0x30, 0x0c,   \
		    0x02, 0x01, 0x01, 0x04, 0x01, (secret), 0xa1, 0x04, 0x03, \
		    0x02, 0x00, (public)                                      \
	}
#define KEY_LEN 42

/* A key with this public half, and its name. */
static const uint8_t *
key_of(uint8_t public, uint8_t name[CUSTODY_HASH])
{
	static uint8_t der[KEY_LEN];
	const uint8_t fresh[KEY_LEN] = KEY_DER(9, public);
	const uint8_t info[] = { 0x30, 0x19, P256, 0x03, 0x02, 0x00, public };

	memcpy(der, fresh, sizeof(der));
	crypto_hash_sha256(name, info, sizeof(info));
	return der;
}

struct fixture {
	struct scratch *s;
	struct state st;
	struct custody c;
	uint8_t chain[CUSTODY_HASH]; /* of chain_text */
	uint8_t key[CUSTODY_HASH];   /* of key_of(7) */
};

static void
set_up(struct fixture *f, void **state)
{
	f->s = *state;
	assert_int_not_equal(sodium_init(), -1);
	snprintf(f->st.dir, sizeof(f->st.dir), "%s", f->s->dir);
	assert_ok(f->s, custody_open(&f->c, &f->st, &f->s->e));
	key_of(7, f->key);
	crypto_hash_sha256(f->chain, (const uint8_t *)chain_text,
	    sizeof(chain_text));
}

static const char *
path_of(const struct fixture *f, enum custody_kind kind, const uint8_t *hash)
{
	static char path[PATH_MAX];
	char name[CUSTODY_NAME_MAX];

	custody_name(kind, hash, name);
	snprintf(path, sizeof(path), "%.1000s/%s", f->c.path, name);
	return path;
}

static unsigned
mode_of(const char *path)
{
	struct stat sb;

	assert_int_equal(stat(path, &sb), 0);
	return sb.st_mode & 07777;
}

static void
what_goes_in_comes_out(void **state)
{
	uint8_t key[CUSTODY_HASH];
	static const uint8_t again[] = KEY_DER(8, 7);
	struct custody_bytes b;
	struct fixture f;

	umask(0);
	set_up(&f, state);
	key_of(7, key);
	assert_int_equal(mode_of(f.c.path), 0700);
	assert_false(custody_has(&f.c, CUSTODY_KEY, key));
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, f.key, key_of(7, key), KEY_LEN,
		true, &f.s->e));
	assert_int_equal(mode_of(path_of(&f, CUSTODY_KEY, key)), 0600);
	assert_true(custody_has(&f.c, CUSTODY_KEY, key));
	assert_false(custody_has(&f.c, CUSTODY_CHAIN, key));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e));
	assert_int_equal(b.size, KEY_LEN);
	assert_memory_equal(b.at, key_of(7, key), KEY_LEN);
	custody_wipe(&b);
	assert_null(b.at);
	custody_wipe(&b);
	/* A second takes its place. */
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, key, again, sizeof(again), true,
		&f.s->e));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e));
	assert_memory_equal(b.at, again, sizeof(again));
	custody_wipe(&b);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), true, &f.s->e));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_CHAIN, f.chain, &b, &f.s->e));
	assert_string_equal(b.at, chain_text);
	custody_wipe(&b);
	custody_close(&f.c);
	umask(022);
}

static void
loose_modes_are_refused(void **state)
{
	uint8_t key[CUSTODY_HASH];
	struct custody_bytes b;
	struct custody again;
	struct fixture f;

	set_up(&f, state);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, f.key, key_of(7, key), KEY_LEN,
		true, &f.s->e));
	assert_int_equal(chmod(path_of(&f, CUSTODY_KEY, key), 0640), 0);
	assert_refused(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e),
	    ERR_LOCAL, "is open to others (mode 0640)");
	assert_int_equal(unlink(path_of(&f, CUSTODY_KEY, key)), 0);
	assert_refused(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e),
	    ERR_NO_TARGET, "the key is not here");
	assert_int_equal(symlink("/dev/null", path_of(&f, CUSTODY_KEY, key)),
	    0);
	assert_refused(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e),
	    ERR_LOCAL, "cannot open");
	assert_false(custody_has(&f.c, CUSTODY_KEY, key));
	assert_int_equal(chmod(f.c.path, 0755), 0);
	assert_refused(f.s, custody_open(&again, &f.st, &f.s->e), ERR_LOCAL,
	    "chmod 700 it");
	assert_int_equal(again.dir, -1);
	custody_close(&f.c);
}

static void
damage_is_found(void **state)
{
	uint8_t wrong[CUSTODY_HASH];
	char big[CUSTODY_SIZE_MAX + 1] = "";
	struct custody_bytes b;
	struct fixture f;
	int fd;

	set_up(&f, state);
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.key, "x", 1, true, &f.s->e),
	    ERR_CORRUPT, "not what its name says");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, f.key, key_of(8, wrong), KEY_LEN,
		true, &f.s->e),
	    ERR_CORRUPT, "not what its name says");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, f.key, "x", 1, true, &f.s->e),
	    ERR_CORRUPT, "it is damaged");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, wrong, big, sizeof(big), true,
		&f.s->e),
	    ERR_USAGE, "not 65537");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, wrong, "", 0, true, &f.s->e),
	    ERR_USAGE, "not 0");
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), true, &f.s->e));
	fd = open(path_of(&f, CUSTODY_CHAIN, f.chain), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 2), 1);
	assert_refused(f.s,
	    custody_read(&f.c, CUSTODY_CHAIN, f.chain, &b, &f.s->e),
	    ERR_CORRUPT, "it is damaged");
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	assert_refused(f.s,
	    custody_read(&f.c, CUSTODY_CHAIN, f.chain, &b, &f.s->e),
	    ERR_CORRUPT, "0 bytes");
	assert_false(custody_has(&f.c, CUSTODY_CHAIN, f.chain));
	custody_close(&f.c);
}

static bool
keep_this(enum custody_kind kind, const uint8_t *hash, void *arg)
{
	return kind == CUSTODY_KEY && memcmp(hash, arg, CUSTODY_HASH) == 0;
}

static void
only_what_nobody_wants_is_swept(void **state)
{
	uint8_t seven[CUSTODY_HASH], eight[CUSTODY_HASH];
	char foreign[PATH_MAX];
	const uint8_t *other;
	struct fixture f;

	set_up(&f, state);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, f.key, key_of(7, seven), KEY_LEN,
		false, &f.s->e));
	other = key_of(8, eight);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, eight, other, KEY_LEN, false,
		&f.s->e));
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), false, &f.s->e));
	snprintf(foreign, sizeof(foreign), "%.1000s/README", f.c.path);
	assert_ok(f.s, io_write_file(foreign, "x", 1, 0600, &f.s->e));
	assert_ok(f.s, custody_lock(&f.c, &f.s->e));
	assert_ok(f.s, custody_sweep(&f.c, keep_this, seven, &f.s->e));
	assert_true(custody_has(&f.c, CUSTODY_KEY, seven));
	assert_false(custody_has(&f.c, CUSTODY_KEY, eight));
	assert_false(custody_has(&f.c, CUSTODY_CHAIN, f.chain));
	assert_int_equal(access(foreign, F_OK), 0);
	custody_close(&f.c);
}

/* Whatever byte is wrong: refused, or another key. */
static void
keys_are_read_with_care(void **state)
{
	uint8_t name[CUSTODY_HASH], got[CUSTODY_HASH], der[KEY_LEN];

	(void)state;
	assert_int_not_equal(sodium_init(), -1);
	memcpy(der, key_of(7, name), sizeof(der));
	assert_true(pkcs8_public_hash(der, sizeof(der), got));
	assert_memory_equal(got, name, sizeof(got));
	for (size_t n = 0; n < sizeof(der); n++) {
		uint8_t *cut = malloc(n + 1); /* that an overrun shows */

		memcpy(cut, der, n);
		assert_false(pkcs8_public_hash(cut, n, got));
		free(cut);
	}
	for (size_t i = 0; i < sizeof(der); i++)
		for (unsigned bit = 1; bit < 256; bit *= 2) {
			der[i] ^= (uint8_t)bit;
			(void)pkcs8_public_hash(der, sizeof(der), got);
			der[i] ^= (uint8_t)bit;
		}
}

static void
names(void **state)
{
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	static const char *const bad[] = { "", "x.key", HEX, HEX ".pem",
		HEX "0.key", "0" HEX ".key", HEX ".key/..", "../" HEX ".key",
		("A0112233445566778899aabbccddeeff"
		 "00112233445566778899aabbccddeeff.key") };
	uint8_t hash[CUSTODY_HASH];
	char name[CUSTODY_NAME_MAX];
	enum custody_kind kind;

	(void)state;
	assert_int_not_equal(sodium_init(), -1);
	for (size_t i = 0; i < nitems(bad); i++)
		assert_false(custody_parse(bad[i], &kind, hash));
	assert_true(custody_parse(HEX ".ocsp", &kind, hash));
	assert_int_equal(kind, CUSTODY_STAPLE);
	custody_name(kind, hash, name);
	assert_string_equal(name, HEX ".ocsp");
}

#define TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, scratch_setup, scratch_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_goes_in_comes_out),
		TEST(loose_modes_are_refused),
		TEST(damage_is_found),
		TEST(only_what_nobody_wants_is_swept),
		cmocka_unit_test(keys_are_read_with_care),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
