/* test_roster.c: a roster written, verified, read, cut, forged, adopted. */
#include "tests/unit/common/scratch.h"

#include <dirent.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/certs.h"
#include "common/registry/roster.h"
#include "common/registry/tokens.h"

static uint8_t authority[KEY_SIZE], secret[64], other_pub[KEY_SIZE],
    other_secret[64];

static int
make_keys(void **state)
{
	(void)state;
	if (sodium_init() == -1)
		return -1;
	crypto_sign_keypair(authority, secret);
	return crypto_sign_keypair(other_pub, other_secret);
}

static const char *
roster_path(struct scratch *s)
{
	static char path[PATH_MAX];

	return scratch_path(s, "roster", path);
}

/* Signs the registry as it is and opens the result. */
static struct roster *
sign_and_open(struct scratch *s)
{
	struct roster *r;

	assert_ok(s,
	    roster_write(s->r, secret, 1700000000, roster_path(s), &s->e));
	r = roster_open(roster_path(s), authority, &s->e);
	if (r == NULL)
		fail_msg("%s", s->e.text);
	return r;
}

static int
take_site(const struct site *site, void *arg)
{
	snprintf(arg, 400, "%s %.60s %d", site->name, site->aliases,
	    site->enabled);
	return 0;
}

static int
take_operator(const struct operator_row *op, void *arg)
{
	*(struct operator_row *)arg = *op;
	return 0;
}

static int
take_revoked(uint64_t serial, int64_t not_after_s, void *arg)
{
	assert_int_equal(not_after_s, 1800000000);
	*(uint64_t *)arg = serial;
	return 0;
}

static int
take_role(const struct role *role, void *arg)
{
	if (strcmp(role->name, ROLE_WORKER_HTTP) == 0)
		*(struct role *)arg = *role;
	return 0;
}

static void
all_of_it_is_read_back(void **state)
{
	static const char *const grants[] = { "exec" };
	static const uint8_t key[KEY_SIZE] = { 3 }, gone[KEY_SIZE] = { 4 };
	struct scratch *s = *state;
	struct settings settings;
	struct operator_row op;
	struct roster *r;
	struct role role;
	struct site site;
	struct node n;
	uint64_t serial, lost, revoked = 0;
	char text[400] = "";
	struct stat sb;

	node_init(&n, "web1");
	snprintf(n.addr, sizeof(n.addr), "fd00::7");
	n.agent_port = 7400;
	n.n_roles = 1;
	snprintf(n.roles[0].name, 64, "worker_http");
	n.roles[0].port = 9000;
	assert_ok(s, nodes_add(s->r, &n, &s->e));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "web1", key, 1800000000, &serial,
		&s->e));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "web1", key, 1800000000, &serial,
		&s->e));
	assert_ok(s, scratch_add_node(s, "gone", "10.0.0.9", "storage"));
	assert_ok(s,
	    certs_issue(s->r, HOLDER_NODE, "gone", gone, 1800000000, &lost,
		&s->e));
	assert_ok(s, nodes_remove(s->r, "gone", &s->e));
	assert_ok(s, operators_add(s->r, "ann", grants, 1, 99, &s->e));
	assert_ok(s, settings_set(s->r, "proxy.retries", "7", &s->e));
	assert_ok(s, roles_set(s->r, "worker_http", "rise", "9", &s->e));
	site_init(&site, "a.example");
	assert_ok(s, site_add_alias(&site, "*.a.example", &s->e));
	site.enabled = false;
	assert_ok(s, sites_add(s->r, &site, &s->e));
	site_fini(&site);

	r = sign_and_open(s);
	assert_int_equal(stat(roster_path(s), &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0600);
	assert_string_equal(roster_cluster_name(r), "test");
	assert_string_equal(roster_cluster_uuid(r),
	    registry_cluster_uuid(s->r));
	assert_int_equal(roster_revision(r), scratch_revision(s));

	assert_ok(s, roster_get_node(r, "web1", &n, &s->e));
	assert_string_equal(n.addr, "fd00::7");
	assert_int_equal(n.roles[0].port, 9000);
	assert_int_equal(n.serial, serial);
	assert_int_equal(n.cert_not_after_s, 1800000000);
	assert_refused(s, roster_get_node(r, "web2", &n, &s->e), ERR_NO_TARGET,
	    "did you mean 'web1'");
	assert_refused(s, roster_get_node(r, "\"bad\"", &n, &s->e),
	    ERR_NO_TARGET, "no such node");

	assert_ok(s, roster_settings(r, &settings, &s->e));
	assert_int_equal(settings.retries, 7);
	assert_int_equal(settings.header_fields, 100);
	assert_ok(s, roster_each_role(r, take_role, &role, &s->e));
	assert_int_equal(role.rise, 9);
	assert_int_equal(role.port, 80);
	assert_ok(s, roster_each_revoked(r, take_revoked, &revoked, &s->e));
	assert_int_equal(revoked, lost);
	assert_ok(s, roster_each_operator(r, take_operator, &op, &s->e));
	assert_string_equal(op.grants[0], "exec");
	assert_int_equal(op.until_s, 99);
	assert_ok(s, roster_each_site(r, take_site, text, &s->e));
	assert_string_equal(text, "a.example *.a.example 0");
	roster_close(r);
}

static void
nothing_secret_is_in_it(void **state)
{
	struct token_row t = { .kind = HOLDER_NODE,
		.uses = 1,
		.expires_ms = 1 };
	struct scratch *s = *state;
	char *data;
	size_t size;

	memset(t.psk, 'p', sizeof(t.psk));
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	roster_close(sign_and_open(s));
	assert_ok(s,
	    io_read_file(roster_path(s), 1 << 20, &data, &size, &s->e));
	assert_null(memmem(data, size, "pppp", 4));
	assert_null(memmem(data, size, "70707070", 8));
	assert_null(memmem(data, size, "token", 5));
	free(data);
}

/* Whatever single byte is changed, or where it is cut: refused. */
static void
damage_is_refused(void **state)
{
	struct scratch *s = *state;
	char path[PATH_MAX], *data;
	size_t size;

	roster_close(sign_and_open(s));
	assert_ok(s,
	    io_read_file(roster_path(s), 1 << 20, &data, &size, &s->e));
	scratch_path(s, "damaged", path);
	for (size_t i = 0; i < size; i += i < 300 ? 1 : 7) {
		data[i] ^= 1;
		assert_ok(s, io_write_file(path, data, size, 0600, &s->e));
		assert_null(roster_open(path, authority, &s->e));
		assert_true(
		    s->e.code == ERR_STRANGER || s->e.code == ERR_CORRUPT);
		data[i] ^= 1;
	}
	for (size_t n = 0; n < size; n += 11) {
		assert_ok(s, io_write_file(path, data, n, 0600, &s->e));
		assert_null(roster_open(path, authority, &s->e));
	}
	free(data);
	assert_null(roster_open(roster_path(s), other_pub, &s->e));
	assert_int_equal(s->e.code, ERR_STRANGER);
	assert_null(roster_open(s->dir, authority, &s->e));
	assert_null(
	    roster_open(scratch_path(s, "none", path), authority, &s->e));
	assert_int_equal(s->e.code, ERR_LOCAL);
}

static int
adopt(struct scratch *s, const char *from, const char *to, const char *uuid,
    bool *adopted)
{
	struct roster_intake *in = roster_intake_new(to, &s->e);
	char *data;
	size_t size;
	int rv;

	assert_non_null(in);
	assert_ok(s, io_read_file(from, 1 << 20, &data, &size, &s->e));
	for (size_t i = 0; i < size; i += 100)
		assert_ok(s,
		    roster_intake_add(in, data + i,
			size - i < 100 ? size - i : 100, &s->e));
	free(data);
	rv = roster_intake_adopt(in, authority, uuid, adopted, &s->e);
	roster_intake_free(in);
	return rv;
}

static int
files_in(const struct scratch *s)
{
	DIR *d = opendir(s->dir);
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
only_newer_ones_are_adopted(void **state)
{
	struct scratch *s = *state;
	char old[PATH_MAX], new[PATH_MAX], forged[PATH_MAX], mine[PATH_MAX];
	bool adopted = false;
	int n_files;

	scratch_path(s, "old", old);
	scratch_path(s, "new", new);
	scratch_path(s, "forged", forged);
	scratch_path(s, "mine", mine);
	assert_ok(s, roster_write(s->r, secret, 1, old, &s->e));
	assert_ok(s, settings_set(s->r, "proxy.retries", "1", &s->e));
	assert_ok(s, roster_write(s->r, secret, 2, new, &s->e));
	assert_ok(s, settings_set(s->r, "proxy.retries", "3", &s->e));
	assert_ok(s, roster_write(s->r, other_secret, 3, forged, &s->e));

	assert_ok(s, adopt(s, old, mine, NULL, &adopted));
	assert_true(adopted);
	n_files = files_in(s);
	assert_ok(s, adopt(s, old, mine, NULL, &adopted));
	assert_false(adopted);
	assert_ok(s,
	    adopt(s, new, mine, registry_cluster_uuid(s->r), &adopted));
	assert_true(adopted);
	assert_refused(s, adopt(s, old, mine, NULL, &adopted), ERR_DENIED,
	    "older");
	assert_refused(s, adopt(s, forged, mine, NULL, &adopted), ERR_STRANGER,
	    "not signed by this cluster's authority");
	assert_refused(s,
	    adopt(s, new, mine, "00000000-0000-4000-8000-000000000000",
		&adopted),
	    ERR_DENIED, "another cluster");
	/* Refused ones leave nothing beside it. */
	assert_int_equal(files_in(s), n_files);

	/* A damaged present file is no reason to go on without one. */
	assert_ok(s, io_write_file(mine, "x", 1, 0600, &s->e));
	assert_ok(s, adopt(s, old, mine, NULL, &adopted));
	assert_true(adopted);
}

static void
an_open_one_outlives_its_file(void **state)
{
	struct scratch *s = *state;
	struct roster *r = sign_and_open(s);
	struct node n;

	assert_ok(s, scratch_add_node(s, "web1", "10.0.0.5", "storage"));
	assert_ok(s, roster_write(s->r, secret, 9, roster_path(s), &s->e));
	assert_int_equal(roster_get_node(r, "web1", &n, &s->e), -1);
	assert_ok(s, roster_get_node(r, "m1", &n, &s->e));
	roster_close(r);
}

static void
a_restored_registry_signs_above_what_was_signed(void **state)
{
	struct scratch *s = *state;
	struct token_row t = { .kind = HOLDER_NODE,
		.uses = 1,
		.expires_ms = INT64_MAX };
	char backup[PATH_MAX];
	struct roster *r;
	int64_t signed_last;

	scratch_path(s, "backup", backup);
	assert_ok(s, tokens_add(s->r, &t, &s->e));
	assert_ok(s, registry_backup(s->r, backup, &s->e));
	for (int i = 0; i < 5; i++)
		assert_ok(s,
		    settings_set(s->r, "proxy.retries", i % 2 ? "1" : "3",
			&s->e));
	r = sign_and_open(s);
	signed_last = roster_revision(r);
	roster_close(r);

	registry_close(s->r);
	unlink(s->db);
	assert_int_equal(rename(backup, s->db), 0);
	s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
	assert_non_null(s->r);
	assert_true(scratch_revision(s) < signed_last);
	r = sign_and_open(s);
	assert_true(roster_revision(r) > signed_last);
	roster_close(r);
	/* A token that was used since must not work again. */
	assert_ok(s, tokens_get(s->r, t.id, &t, &s->e));
	assert_true(t.expires_ms <= clock_wall_ms());
}

static void
many_lines_are_walked_in_one_buffer(void **state)
{
	struct scratch *s = *state;
	struct roster *r;
	struct node n;
	struct stat sb;
	char name[32], addr[32];

	assert_ok(s, registry_begin(s->r, &s->e, "many"));
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		snprintf(addr, sizeof(addr), "10.1.%d.%d", i / 250, i % 250);
		assert_ok(s, scratch_add_node(s, name, addr, "storage"));
	}
	assert_ok(s, registry_end(s->r, 0, &s->e));
	r = sign_and_open(s);
	assert_int_equal(stat(roster_path(s), &sb), 0);
	assert_true(sb.st_size > 2 * ROSTER_LINE_MAX);
	for (int i = 0; i < 2000; i += 97) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_ok(s, roster_get_node(r, name, &n, &s->e));
		assert_string_equal(n.name, name);
	}
	roster_close(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(all_of_it_is_read_back),
		scratch_test(nothing_secret_is_in_it),
		scratch_test(damage_is_refused),
		scratch_test(only_newer_ones_are_adopted),
		scratch_test(an_open_one_outlives_its_file),
		scratch_test(a_restored_registry_signs_above_what_was_signed),
		scratch_test(many_lines_are_walked_in_one_buffer),
	};

	return cmocka_run_group_tests_name("roster", tests, make_keys, NULL);
}
