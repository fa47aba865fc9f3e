/* test_registry.c: opening, changing, and what goes wrong with the file. */
#include "tests/unit/common/scratch.h"

#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>

#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/settings.h"
#include "common/registry/sites.h"

static void
reopen(struct scratch *s, enum registry_mode mode)
{
	registry_close(s->r);
	s->r = registry_open(s->db, mode, &s->e);
	if (s->r == NULL)
		fail_msg("%s", s->e.text);
}

/* What registry_open says of the file as it is now. */
static void
assert_open_refused(struct scratch *s, int code, const char *part)
{
	registry_close(s->r);
	s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
	assert_null(s->r);
	assert_int_equal(s->e.code, code);
	if (strstr(s->e.text, part) == NULL)
		fail_msg("'%s' is not in: %s", part, s->e.text);
}

static void
run_sql(struct scratch *s, const char *sql)
{
	sqlite3 *db;

	registry_close(s->r);
	s->r = NULL;
	assert_int_equal(sqlite3_open(s->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static mode_t
mode_of(const char *path)
{
	struct stat sb;

	assert_int_equal(stat(path, &sb), 0);
	return sb.st_mode & 07777;
}

static void
every_file_is_private(void **state)
{
	struct scratch *s = *state;
	char path[PATH_MAX];
	mode_t was = umask(0);

	reopen(s, REGISTRY_WRITE);
	assert_ok(s, settings_set(s->r, "proxy.workers", "2", &s->e));
	umask(was);
	assert_int_equal(mode_of(s->db), 0600);
	assert_int_equal(mode_of(scratch_path(s, "registry.db-wal", path)),
	    0600);
	assert_int_equal(mode_of(scratch_path(s, "registry.db-shm", path)),
	    0600);
}

static void
an_existing_one_is_never_replaced(void **state)
{
	struct scratch *s = *state;
	char uuid[UUID_LEN + 1];

	memcpy(uuid, registry_cluster_uuid(s->r), sizeof(uuid));
	assert_null(registry_create(s->db, "other", &s->e));
	assert_non_null(strstr(s->e.text, "exists already"));
	reopen(s, REGISTRY_READ);
	assert_string_equal(registry_cluster_uuid(s->r), uuid);
	assert_string_equal(registry_cluster_name(s->r), "test");
	assert_null(registry_create("/nonexistent/r.db", "x", &s->e));
	assert_null(registry_create(s->db, "Bad Name", &s->e));
	assert_int_equal(s->e.code, ERR_USAGE);
}

static void
a_missing_one_names_the_remedy(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(unlink(s->db), 0);
	assert_open_refused(s, ERR_LOCAL, "clusterctl init");
}

static void
an_open_mode_is_refused(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(chmod(s->db, 0640), 0);
	assert_open_refused(s, ERR_LOCAL, "chmod 600");
}

static void
a_newer_schema_is_refused(void **state)
{
	struct scratch *s = *state;

	run_sql(s, "PRAGMA user_version = 99");
	assert_open_refused(s, ERR_VERSION, "newer version (schema 99");
}

static void
garbage_is_refused(void **state)
{
	struct scratch *s = *state;
	char junk[20000];

	memset(junk, 'j', sizeof(junk));
	registry_close(s->r);
	s->r = NULL;
	assert_ok(s, io_write_file(s->db, junk, sizeof(junk), 0600, &s->e));
	assert_open_refused(s, ERR_CORRUPT, "not a registry");
	assert_ok(s, io_write_file(s->db, "", 0, 0600, &s->e));
	assert_open_refused(s, ERR_CORRUPT, "not a registry");
	/* A database of somebody else's. */
	unlink(s->db);
	run_sql(s, "CREATE TABLE t (x)");
	chmod(s->db, 0600);
	assert_open_refused(s, ERR_CORRUPT, "not a registry");
}

static void
damage_is_found(void **state)
{
	struct scratch *s = *state;
	char junk[4096];
	size_t n_found = 0;
	int fd;

	reopen(s, REGISTRY_WRITE);
	registry_close(s->r);
	s->r = NULL;
	memset(junk, 'j', sizeof(junk));
	fd = open(s->db, O_WRONLY | O_CLOEXEC);
	assert_int_not_equal(fd, -1);
	for (off_t at = 3 * 4096; at < 40 * 4096; at += 4096)
		assert_int_equal(pwrite(fd, junk, 2048, at), 2048);
	close(fd);
	s->r = registry_open(s->db, REGISTRY_READ, &s->e);
	if (s->r == NULL) {
		assert_int_equal(s->e.code, ERR_CORRUPT);
		return;
	}
	assert_ok(s,
	    registry_check(s->r, scratch_print, NULL, &n_found, &s->e));
	assert_true(n_found > 0);
}

static void
broken_rules_are_found(void **state)
{
	struct scratch *s = *state;
	size_t n_found = 0;

	run_sql(s,
	    "PRAGMA foreign_keys = OFF; DELETE FROM node_roles; "
	    "UPDATE nodes SET options = '{\"weight\":\"x\"}'; "
	    "INSERT INTO hosts VALUES ('lost.example', 77, 0); "
	    "INSERT INTO settings VALUES ('proxy.workers', 'many')");
	s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
	assert_non_null(s->r);
	assert_ok(s,
	    registry_check(s->r, scratch_print, NULL, &n_found, &s->e));
	assert_int_equal(n_found, 5);
}

static int
take_change(const struct change *c, void *arg)
{
	snprintf(arg, 200, "%s: %s", c->who, c->what);
	return 1;
}

static void
a_change_leaves_a_revision_and_a_row(void **state)
{
	struct scratch *s = *state;
	int64_t was = scratch_revision(s);
	char text[200] = "";

	registry_set_actor(s->r, "operator ann");
	assert_ok(s, settings_set(s->r, "proxy.workers", "2", &s->e));
	assert_int_equal(scratch_revision(s), was + 1);
	assert_int_equal(registry_changes(s->r, 5, take_change, text, &s->e),
	    1);
	assert_string_equal(text, "operator ann: set proxy.workers 2");
	/* What changes nothing is no change. */
	assert_ok(s, settings_set(s->r, "proxy.workers", "2", &s->e));
	assert_int_equal(settings_set(s->r, "proxy.workers", "0", &s->e), -1);
	assert_int_equal(scratch_revision(s), was + 1);
}

static void
changes_nest(void **state)
{
	struct scratch *s = *state;
	int64_t was = scratch_revision(s);
	struct settings set;
	struct site site;
	char text[200];

	site_init(&site, "a.example");
	assert_ok(s, registry_begin(s->r, &s->e, "two things"));
	assert_ok(s, sites_add(s->r, &site, &s->e));
	/* One that fails undoes its own part alone. */
	assert_int_equal(sites_add(s->r, &site, &s->e), -1);
	assert_ok(s, settings_set(s->r, "proxy.retries", "1", &s->e));
	assert_ok(s, registry_end(s->r, 0, &s->e));
	assert_int_equal(scratch_revision(s), was + 1);
	registry_changes(s->r, 1, take_change, text, &s->e);
	assert_string_equal(text, "local: two things");

	assert_ok(s, registry_begin(s->r, &s->e, "undone"));
	assert_ok(s, settings_set(s->r, "proxy.retries", "5", &s->e));
	assert_ok(s, sites_remove(s->r, "a.example", &s->e));
	assert_int_equal(registry_end(s->r, 7, &s->e), 7);
	assert_int_equal(scratch_revision(s), was + 1);
	assert_ok(s, settings_load(s->r, &set, &s->e));
	assert_int_equal(set.retries, 1);
	assert_ok(s, sites_get(s->r, "a.example", &site, &s->e));
	site_fini(&site);
}

static void
a_reader_cannot_write(void **state)
{
	struct scratch *s = *state;

	reopen(s, REGISTRY_READ);
	assert_refused(s, settings_set(s->r, "proxy.retries", "1", &s->e),
	    ERR_LOCAL, "reading only");
}

static void
a_snapshot_stands_still(void **state)
{
	struct scratch *s = *state;
	struct registry *other = registry_open(s->db, REGISTRY_WRITE, &s->e);
	int64_t was = scratch_revision(s);

	assert_non_null(other);
	assert_ok(s, registry_snapshot(s->r, &s->e));
	assert_ok(s, settings_set(other, "proxy.retries", "1", &s->e));
	assert_int_equal(scratch_revision(s), was);
	registry_snapshot_end(s->r);
	assert_int_equal(scratch_revision(s), was + 1);
	registry_close(other);
}

static void
a_second_writer_is_told(void **state)
{
	struct scratch *s = *state;
	struct registry *other = registry_open(s->db, REGISTRY_WRITE, &s->e);

	assert_non_null(other);
	assert_ok(s, registry_begin(other, &s->e, "slow"));
	/* A change would wait for ten seconds; a note says the same soon. */
	assert_refused(s, registry_begin_note(s->r, &s->e), ERR_BUSY,
	    "try again");
	assert_int_equal(registry_end(other, 1, &s->e), 1);
	assert_ok(s, settings_set(s->r, "proxy.retries", "1", &s->e));
	registry_close(other);
}

static void
a_replaced_file_is_not_written(void **state)
{
	struct scratch *s = *state;
	char other[PATH_MAX];
	int64_t revision;

	scratch_path(s, "other.db", other);
	assert_ok(s, registry_backup(s->r, other, &s->e));
	assert_int_equal(rename(other, s->db), 0);
	assert_refused(s, registry_revision(s->r, &revision, &s->e), ERR_LOCAL,
	    "removed or replaced");
	assert_refused(s, settings_set(s->r, "proxy.retries", "1", &s->e),
	    ERR_LOCAL, "removed or replaced");
	assert_int_equal(unlink(s->db), 0);
	assert_refused(s, registry_snapshot(s->r, &s->e), ERR_LOCAL,
	    "removed or replaced");
}

static int
add_sites(struct scratch *s, int from, int n)
{
	struct site site;
	char name[64];
	int rv = 0;

	if (registry_begin(s->r, &s->e, "add %d sites", n) == -1)
		return -1;
	for (int i = from; rv == 0 && i < from + n; i++) {
		snprintf(name, sizeof(name), "site%d.example", i);
		site_init(&site, name);
		rv = sites_add(s->r, &site, &s->e);
		site_fini(&site);
	}
	return registry_end(s->r, rv, &s->e);
}

static void
a_full_disk_undoes_all(void **state)
{
	struct scratch *s = *state;
	int64_t was = scratch_revision(s);

	/* As good as a full disk, and root's is never full. */
	sqlite3_exec(s->r->db, "PRAGMA max_page_count = 80", NULL, NULL, NULL);
	assert_refused(s, add_sites(s, 0, 20000), ERR_LOCAL, "disk is full");
	assert_int_equal(scratch_revision(s), was);
	assert_int_equal(scratch_count_sites(s), 0);
	scratch_assert_sound(s);
	assert_ok(s, settings_set(s->r, "proxy.retries", "1", &s->e));
}

static void
a_backup_is_whole_and_private(void **state)
{
	struct scratch *s = *state;
	char path[PATH_MAX];
	struct registry *copy;
	int64_t n = 0;

	assert_ok(s, add_sites(s, 0, 100));
	scratch_path(s, "backup", path);
	assert_ok(s, registry_backup(s->r, path, &s->e));
	assert_int_equal(mode_of(path), 0600);
	copy = registry_open(path, REGISTRY_READ, &s->e);
	assert_non_null(copy);
	assert_ok(s, sites_each(copy, scratch_count_one, &n, &s->e));
	assert_int_equal(n, 100);
	registry_close(copy);
	assert_int_equal(registry_backup(s->r, "/nonexistent/backup", &s->e),
	    -1);
}

static void
a_restored_one_goes_on_behind(void **state)
{
	struct scratch *s = *state;
	int64_t was = scratch_revision(s);

	assert_ok(s, registry_advance(s->r, was - 1, &s->e));
	assert_int_equal(scratch_revision(s), was);
	assert_ok(s, registry_advance(s->r, was + 500, &s->e));
	assert_int_equal(scratch_revision(s), was + 501);
	scratch_assert_sound(s);
}

/* Changes without end; a byte on the pipe after each. */
static void
change_for_ever(struct scratch *s, int fd)
{
	for (int i = 0;; i++) {
		if (settings_set(s->r, "proxy.retries", i % 2 ? "1" : "3",
			&s->e) != 0 ||
		    add_sites(s, i * 10, 10) != 0 ||
		    io_write_n(fd, "x", 1) == -1)
			_exit(1);
	}
}

static void
a_kill_leaves_it_sound(void **state)
{
	struct scratch *s = *state;
	int64_t n = 0, last = 0;
	char byte;

	registry_close(s->r);
	s->r = NULL;
	for (int round = 0; round < 25; round++) {
		int fds[2], status;
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		if ((pid = fork()) == 0) {
			s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
			if (s->r != NULL)
				change_for_ever(s, fds[1]);
			_exit(1);
		}
		close(fds[1]);
		/* The next change is under way when the byte is here. */
		for (int i = 0; i <= round % 3; i++)
			assert_int_equal(io_read_n(fds[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(fds[0]);
		s->r = registry_open(s->db, REGISTRY_WRITE, &s->e);
		if (s->r == NULL)
			fail_msg("%s", s->e.text);
		scratch_assert_sound(s);
		/* All of a change or nothing of it. */
		n = scratch_count_sites(s);
		assert_int_equal(n % 10, 0);
		assert_true(n >= 10);
		assert_true(scratch_revision(s) > last);
		last = scratch_revision(s);
		assert_ok(s, registry_begin(s->r, &s->e, "clear"));
		assert_ok(s, db_run(s->r, &s->e, "DELETE FROM sites"));
		assert_ok(s, registry_end(s->r, 0, &s->e));
		registry_close(s->r);
		s->r = NULL;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(every_file_is_private),
		scratch_test(an_existing_one_is_never_replaced),
		scratch_test(a_missing_one_names_the_remedy),
		scratch_test(an_open_mode_is_refused),
		scratch_test(a_newer_schema_is_refused),
		scratch_test(garbage_is_refused),
		scratch_test(damage_is_found),
		scratch_test(broken_rules_are_found),
		scratch_test(a_change_leaves_a_revision_and_a_row),
		scratch_test(changes_nest),
		scratch_test(a_reader_cannot_write),
		scratch_test(a_snapshot_stands_still),
		scratch_test(a_second_writer_is_told),
		scratch_test(a_replaced_file_is_not_written),
		scratch_test(a_full_disk_undoes_all),
		scratch_test(a_backup_is_whole_and_private),
		scratch_test(a_restored_one_goes_on_behind),
		scratch_test(a_kill_leaves_it_sound),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
