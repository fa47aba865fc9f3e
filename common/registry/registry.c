/* registry.c: making, opening and closing; see registry.h and change.c. */
#include "common/registry/registry.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/db.h"

#define APPLICATION_ID 0x6d757374 /* "must"; set by the first migration */

static const char *const connection_pragmas[] = {
	"PRAGMA foreign_keys = ON",
	"PRAGMA cell_size_check = ON",
	/* A consumed token stays consumed after a power cut, too. */
	"PRAGMA synchronous = FULL",
};

/* Not for a file that is still being made: there it stays one file. */
static const char *const wal_pragmas[] = {
	"PRAGMA journal_mode = WAL",
	"PRAGMA journal_size_limit = 4194304",
};

static struct registry *open_handle(const char *path, enum registry_mode,
    struct err *);
static int run_pragmas(struct registry *, const char *const *, size_t n,
    struct err *);
static int check_file(const char *path, struct stat *, struct err *);
static int check_schema(struct registry *, struct err *);
static int load_cluster(struct registry *, struct err *);
static int fill_new(const char *path, const char *cluster_name, struct err *);

struct registry *
registry_create(const char *path, const char *cluster_name, struct err *e)
{
	char tmp[PATH_MAX];
	int fd, rv;

	if (name_check("cluster name", cluster_name, e) == -1)
		return NULL;
	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.new.XXXXXX", path) >=
	    sizeof(tmp)) {
		err_set(e, ERR_LOCAL, "path too long: %s", path);
		return NULL;
	}
	/* mkostemp makes 0600, and SQLite gives -wal and -shm the same. */
	if ((fd = mkostemp(tmp, O_CLOEXEC)) == -1) {
		err_errno(e, ERR_LOCAL, "cannot create %s", tmp);
		return NULL;
	}
	close(fd);
	rv = fill_new(tmp, cluster_name, e);
	/* link, not rename: a registry that is there is never replaced. */
	if (rv == 0 && link(tmp, path) == -1)
		rv = errno == EEXIST ?
		    err_set(e, ERR_LOCAL, "%s exists already", path) :
		    err_errno(e, ERR_LOCAL, "cannot create %s", path);
	unlink(tmp);
	return rv == 0 ? registry_open(path, REGISTRY_WRITE, e) : NULL;
}

struct registry *
registry_open(const char *path, enum registry_mode mode, struct err *e)
{
	struct registry *r;
	struct stat sb;

	if (check_file(path, &sb, e) == -1 ||
	    (r = open_handle(path, mode, e)) == NULL)
		return NULL;
	r->dev = sb.st_dev;
	r->ino = sb.st_ino;
	if (check_schema(r, e) == -1)
		goto fail;
	if (mode == REGISTRY_WRITE &&
	    (run_pragmas(r, wal_pragmas, nitems(wal_pragmas), e) == -1 ||
		db_migrate(r, e) == -1))
		goto fail;
	if (load_cluster(r, e) == -1)
		goto fail;
	return r;
fail:
	registry_close(r);
	return NULL;
}

void
registry_close(struct registry *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n_statements; i++)
		sqlite3_finalize(r->statements[i].stmt);
	/* An open transaction is rolled back by this. */
	sqlite3_close(r->db);
	free(r);
}

const char *
registry_cluster_uuid(const struct registry *r)
{
	return r->cluster_uuid;
}

const char *
registry_cluster_name(const struct registry *r)
{
	return r->cluster_name;
}

void
registry_set_actor(struct registry *r, const char *who)
{
	snprintf(r->actor, sizeof(r->actor), "%s", who);
}

int
db_check_file(struct registry *r, struct err *e)
{
	struct stat sb;

	if (stat(r->path, &sb) == 0 && sb.st_dev == r->dev &&
	    sb.st_ino == r->ino)
		return 0;
	return err_set(e, ERR_LOCAL,
	    "registry %s was removed or replaced while in use; stop nodeagent "
	    "and proxyd, put the right file there without -wal and -shm, and "
	    "start them",
	    r->path);
}

static struct registry *
open_handle(const char *path, enum registry_mode mode, struct err *e)
{
	int flags = mode == REGISTRY_WRITE ? SQLITE_OPEN_READWRITE :
					     SQLITE_OPEN_READONLY;
	struct registry *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		err_set(e, ERR_LOCAL, "out of memory");
		return NULL;
	}
	r->mode = mode;
	snprintf(r->path, sizeof(r->path), "%s", path);
	registry_set_actor(r, "local");
	if (sqlite3_open_v2(path, &r->db, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK) {
		db_error(r, e);
		registry_close(r);
		return NULL;
	}
	sqlite3_busy_timeout(r->db, REGISTRY_BUSY_MS);
	sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (run_pragmas(r, connection_pragmas, nitems(connection_pragmas), e) ==
	    -1) {
		registry_close(r);
		return NULL;
	}
	return r;
}

static int
run_pragmas(struct registry *r, const char *const *pragmas, size_t n,
    struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (sqlite3_exec(r->db, pragmas[i], NULL, NULL, NULL) !=
		    SQLITE_OK)
			return db_error(r, e);
	return 0;
}

/* The registry holds the pre-shared keys of open tokens: as careful as with
 * a key file. */
static int
check_file(const char *path, struct stat *sb, struct err *e)
{
	if (lstat(path, sb) == -1 && errno == ENOENT)
		return err_set(e, ERR_LOCAL,
		    "no registry at %s (make one with clusterctl init, or "
		    "work on a master)",
		    path);
	if (lstat(path, sb) == -1)
		return err_errno(e, ERR_LOCAL, "registry %s", path);
	if (!S_ISREG(sb->st_mode))
		return err_set(e, ERR_LOCAL, "registry %s is not a plain file",
		    path);
	if (sb->st_uid != geteuid())
		return err_set(e, ERR_LOCAL,
		    "registry %s belongs to uid %d, not to uid %d", path,
		    (int)sb->st_uid, (int)geteuid());
	if ((sb->st_mode & 0077) != 0)
		return err_set(e, ERR_LOCAL,
		    "registry %s is open to others (mode %04o); chmod 600 it",
		    path, (unsigned)sb->st_mode & 07777);
	return 0;
}

static int
check_schema(struct registry *r, struct err *e)
{
	int64_t id = 0, version = 0;

	if (db_int(r, e, &id, "PRAGMA application_id") == -1 ||
	    db_int(r, e, &version, "PRAGMA user_version") == -1)
		return -1;
	if (id != APPLICATION_ID)
		return err_set(e, ERR_CORRUPT, "%s is not a registry of muster",
		    r->path);
	if (version > db_schema_version())
		return err_set(e, ERR_VERSION,
		    "registry %s was written by a newer version (schema %d, "
		    "this one knows %d); upgrade this machine's muster",
		    r->path, (int)version, db_schema_version());
	if (version < db_schema_version() && r->mode == REGISTRY_READ)
		return err_set(e, ERR_VERSION,
		    "registry %s has an older schema (%d, not %d); start this "
		    "version's nodeagent on the master, which upgrades it",
		    r->path, (int)version, db_schema_version());
	return 0;
}

static int
load_cluster(struct registry *r, struct err *e)
{
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, "SELECT uuid, name FROM cluster") == -1)
		return -1;
	if ((rv = rows_next(&q, e)) == 1) {
		row_text(&q, r->cluster_uuid, sizeof(r->cluster_uuid));
		row_text(&q, r->cluster_name, sizeof(r->cluster_name));
		rows_close(&q);
		return 0;
	}
	return rv == -1 ?
	    -1 :
	    err_set(e, ERR_CORRUPT,
		"registry %s names no cluster; restore a backup", r->path);
}

static int
fill_new(const char *path, const char *cluster_name, struct err *e)
{
	struct registry *r = open_handle(path, REGISTRY_WRITE, e);
	char uuid[UUID_LEN + 1];
	int rv = -1;

	if (r == NULL)
		return -1;
	uuid_make(uuid);
	if (db_migrate(r, e) == 0 &&
	    db_run(r, e,
		"INSERT INTO cluster (id, uuid, name, revision, next_serial, "
		"created_ms) VALUES (1, ?, ?, 0, 1, ?)",
		TEXT(uuid), TEXT(cluster_name), INT(clock_wall_ms())) == 0)
		rv = 0;
	registry_close(r);
	return rv;
}
