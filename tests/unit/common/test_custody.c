/* test_custody.c: keys, chains and staples on disk: modes, names, damage. */
#include "tests/unit/common/scratch.h"

#include <fcntl.h>

#include "common/base/io.h"
#include "common/custody/custody.h"

static const char chain_text[] = "a chain";

struct fixture {
	struct scratch *s;
	struct state st;
	struct custody c;
	uint8_t chain[CUSTODY_HASH]; /* of chain_text */
};

static void
set_up(struct fixture *f, void **state)
{
	f->s = *state;
	assert_int_not_equal(sodium_init(), -1);
	snprintf(f->st.dir, sizeof(f->st.dir), "%s", f->s->dir);
	assert_ok(f->s, custody_open(&f->c, &f->st, &f->s->e));
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
	static const uint8_t key[CUSTODY_HASH] = { 7 };
	struct custody_bytes b;
	struct fixture f;

	umask(0);
	set_up(&f, state);
	assert_int_equal(mode_of(f.c.path), 0700);
	assert_false(custody_has(&f.c, CUSTODY_KEY, key));
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, key, "secret", 6, &f.s->e));
	assert_int_equal(mode_of(path_of(&f, CUSTODY_KEY, key)), 0600);
	assert_true(custody_has(&f.c, CUSTODY_KEY, key));
	assert_false(custody_has(&f.c, CUSTODY_CHAIN, key));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e));
	assert_int_equal(b.size, 6);
	assert_memory_equal(b.at, "secret", 6);
	custody_wipe(&b);
	assert_null(b.at);
	custody_wipe(&b);
	/* A second takes its place. */
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, key, "other", 5, &f.s->e));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_KEY, key, &b, &f.s->e));
	assert_memory_equal(b.at, "other", 5);
	custody_wipe(&b);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), &f.s->e));
	assert_ok(f.s, custody_read(&f.c, CUSTODY_CHAIN, f.chain, &b, &f.s->e));
	assert_string_equal(b.at, chain_text);
	custody_wipe(&b);
	custody_close(&f.c);
	umask(022);
}

static void
loose_modes_are_refused(void **state)
{
	static const uint8_t key[CUSTODY_HASH] = { 7 };
	struct custody_bytes b;
	struct custody again;
	struct fixture f;

	set_up(&f, state);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, key, "secret", 6, &f.s->e));
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
	static const uint8_t wrong[CUSTODY_HASH] = { 1 };
	char big[CUSTODY_SIZE_MAX + 1] = "";
	struct custody_bytes b;
	struct fixture f;
	int fd;

	set_up(&f, state);
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, wrong, "x", 1, &f.s->e),
	    ERR_CORRUPT, "not what its name says");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, wrong, big, sizeof(big), &f.s->e),
	    ERR_USAGE, "not 65537");
	assert_refused(f.s,
	    custody_write(&f.c, CUSTODY_KEY, wrong, "", 0, &f.s->e), ERR_USAGE,
	    "not 0");
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), &f.s->e));
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
keep_sevens(enum custody_kind kind, const uint8_t *hash, void *arg)
{
	(void)arg;
	return kind == CUSTODY_KEY && hash[0] == 7;
}

static void
only_what_nobody_wants_is_swept(void **state)
{
	static const uint8_t seven[CUSTODY_HASH] = { 7 };
	static const uint8_t eight[CUSTODY_HASH] = { 8 };
	char foreign[PATH_MAX];
	struct fixture f;

	set_up(&f, state);
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, seven, "x", 1, &f.s->e));
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_KEY, eight, "x", 1, &f.s->e));
	assert_ok(f.s,
	    custody_write(&f.c, CUSTODY_CHAIN, f.chain, chain_text,
		sizeof(chain_text), &f.s->e));
	snprintf(foreign, sizeof(foreign), "%.1000s/README", f.c.path);
	assert_ok(f.s, io_write_file(foreign, "x", 1, 0600, &f.s->e));
	assert_ok(f.s, custody_lock(&f.c, &f.s->e));
	assert_ok(f.s, custody_sweep(&f.c, keep_sevens, NULL, &f.s->e));
	assert_true(custody_has(&f.c, CUSTODY_KEY, seven));
	assert_false(custody_has(&f.c, CUSTODY_KEY, eight));
	assert_false(custody_has(&f.c, CUSTODY_CHAIN, f.chain));
	assert_int_equal(access(foreign, F_OK), 0);
	custody_close(&f.c);
}

static void
names(void **state)
{
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	static const char *const bad[] = { "", "x.key", HEX, HEX ".pem",
		HEX "0.key", "0" HEX ".key", HEX ".key/..", "../" HEX ".key",
		"A0112233445566778899aabbccddeeff00112233445566778899aabbccddee"
		"ff.key" };
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
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
