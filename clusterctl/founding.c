/* founding.c: see founding.h. */
#include "clusterctl/founding.h"

#include <sys/file.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/secret.h"
#include "common/enroll/issue.h"
#include "common/net/authority.h"
#include "common/net/identity.h"
#include "common/registry/nodes.h"
#include "common/registry/operators.h"
#include "common/registry/registry.h"
#include "common/registry/roles.h"
#include "common/registry/roster.h"

/* What an unfinished founding calls its registry.  While it is there, the
 * keys beside it belong to nobody; the rename takes it away. */
#define UNFINISHED "registry.db.new"

/* All that a founding makes beside the registry. */
static const enum state_file founded[] = { STATE_AUTHORITY_KEY,
	STATE_AUTHORITY_PUB, STATE_NODE_KEY, STATE_NODE_CERT,
	STATE_OPERATOR_KEY, STATE_OPERATOR_CERT, STATE_ROSTER };

static int lock_directory(const struct state *, int *fd, struct err *);
static int check_unused(const struct state *, const char *unfinished,
    struct err *);
static void clear(const struct state *, const char *unfinished);
static void clear_pieces(const struct state *);
static bool is_piece(const struct state *, const char *name);
static int make_all(const struct state *, const struct founding *,
    const char *unfinished, struct err *);
static int make_members(struct registry *, const struct state *,
    const struct founding *, struct err *);
static int make_master(struct registry *, const struct state *,
    const struct founding *, const uint8_t *secret, struct err *);
static int make_operator(struct registry *, const struct state *,
    const uint8_t *secret, struct err *);
static int finish(const struct state *, int dir_fd, const char *unfinished,
    struct err *);

int
founding_perform(const struct state *st, const struct founding *f,
    struct err *e)
{
	char unfinished[PATH_MAX];
	int fd, rv;

	if (io_path(unfinished, sizeof(unfinished), st->dir, UNFINISHED, e) ==
		-1 ||
	    lock_directory(st, &fd, e) == -1)
		return -1;
	rv = check_unused(st, unfinished, e);
	if (rv == 0) {
		clear(st, unfinished);
		rv = make_all(st, f, unfinished, e);
		if (rv == 0)
			rv = finish(st, fd, unfinished, e);
		if (rv == -1)
			clear(st, unfinished);
	}
	close(fd);
	return rv;
}

static int
lock_directory(const struct state *st, int *fd, struct err *e)
{
	*fd = open(st->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %s", st->dir);
	if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	io_close(fd);
	return err_set(e, ERR_BUSY, "another init is under way in %s", st->dir);
}

static int
check_unused(const struct state *st, const char *unfinished, struct err *e)
{
	if (state_has(st, STATE_REGISTRY))
		return err_set(e, ERR_CONFLICT,
		    "%s already holds a cluster (go on with clusterctl "
		    "enroll, or choose another place with --state)",
		    st->dir);
	if (access(unfinished, F_OK) == 0)
		return 0;
	for (size_t i = 0; i < nitems(founded); i++)
		if (state_has(st, founded[i]))
			return err_set(e, ERR_CONFLICT,
			    "%s already belongs to a member of a cluster "
			    "(choose another place with --state)",
			    st->dir);
	return 0;
}

/* The unfinished registry goes last: it vouches for the rest. */
static void
clear(const struct state *st, const char *unfinished)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < nitems(founded); i++)
		unlink(state_path(st, founded[i], path));
	clear_pieces(st);
	unlink(unfinished);
}

/* A kill leaves files half written beside the one they were to become. */
static void
clear_pieces(const struct state *st)
{
	DIR *dir = opendir(st->dir);
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (is_piece(st, d->d_name))
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir != NULL)
		closedir(dir);
}

/* "registry.db.new-wal", "node.key.Xb3f9Q" */
static bool
is_piece(const struct state *st, const char *name)
{
	char path[PATH_MAX];

	if (strncmp(name, UNFINISHED, strlen(UNFINISHED)) == 0)
		return strcmp(name, UNFINISHED) != 0;
	for (size_t i = 0; i < nitems(founded); i++) {
		const char *base = basename(state_path(st, founded[i], path));
		size_t len = strlen(base);

		if (strncmp(name, base, len) == 0 && name[len] == '.')
			return true;
	}
	return false;
}

static int
make_all(const struct state *st, const struct founding *f,
    const char *unfinished, struct err *e)
{
	struct registry *r = registry_create(unfinished, f->cluster, e);
	int rv;

	if (r == NULL)
		return -1;
	registry_set_actor(r, "clusterctl init");
	rv = make_members(r, st, f, e);
	registry_close(r);
	return rv;
}

static int
make_members(struct registry *r, const struct state *st,
    const struct founding *f, struct err *e)
{
	uint8_t secret[AUTHORITY_SECRET_SIZE], public[KEY_SIZE];
	char path[PATH_MAX];
	int rv;

	authority_generate(secret, public);
	rv = authority_store(st, secret, f->passphrase, e);
	if (rv == 0)
		rv = make_master(r, st, f, secret, e);
	if (rv == 0)
		rv = make_operator(r, st, secret, e);
	if (rv == 0)
		rv = roster_write(r, secret, clock_wall_ms() / 1000,
		    state_path(st, STATE_ROSTER, path), e);
	secret_wipe(secret, sizeof(secret));
	return rv;
}

static int
make_master(struct registry *r, const struct state *st,
    const struct founding *f, const uint8_t *secret, struct err *e)
{
	struct channel_identity id;
	struct issued cert;
	struct node n;
	int rv = -1;

	node_init(&n, f->node);
	addr_format_ip(&f->addr, n.addr);
	n.agent_port = addr_port(&f->addr);
	snprintf(n.roles[0].name, sizeof(n.roles[0].name), ROLE_MASTER);
	n.n_roles = 1;
	if (identity_key(st, CERT_NODE, &id, e) == 0 &&
	    nodes_add(r, &n, e) == 0 &&
	    issue_node(r, n.name, id.public, secret, clock_wall_ms() / 1000,
		&cert, e) == 0)
		rv = identity_store(st, CERT_NODE, NULL, cert.bytes, cert.size,
		    e);
	identity_wipe(&id);
	return rv;
}

static int
make_operator(struct registry *r, const struct state *st, const uint8_t *secret,
    struct err *e)
{
	const char *grants[] = { "*" };
	struct channel_identity id;
	struct issued cert;
	int rv = -1;

	if (identity_key(st, CERT_OPERATOR, &id, e) == 0 &&
	    operators_add(r, FOUNDING_OPERATOR, grants, nitems(grants), 0, e) ==
		0 &&
	    issue_operator(r, FOUNDING_OPERATOR, id.public, secret,
		clock_wall_ms() / 1000, &cert, e) == 0)
		rv = identity_store(st, CERT_OPERATOR, NULL, cert.bytes,
		    cert.size, e);
	identity_wipe(&id);
	return rv;
}

/* A power cut before the rename is on disk leaves an unfinished founding,
 * which is sound; so the sync behind it need not succeed. */
static int
finish(const struct state *st, int dir_fd, const char *unfinished,
    struct err *e)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s-wal", unfinished);
	if (access(path, F_OK) == 0)
		return err_set(e, ERR_BUSY,
		    "somebody else has %s open; try again", unfinished);
	if (rename(unfinished, state_path(st, STATE_REGISTRY, path)) == -1)
		return err_errno(e, ERR_LOCAL, "cannot create %s", path);
	(void)fsync(dir_fd);
	return 0;
}
