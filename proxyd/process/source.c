/* source.c: see source.h. */
#include "proxyd/process/source.h"

#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/registry.h"
#include "common/registry/roster.h"

struct source {
	struct state state;
	enum state_file file; /* STATE_N_FILES: not known yet */
	struct stat seen;     /* of the file that is open */
	struct registry *registry;
	struct roster *roster;
};

static int choose(struct source *, struct err *);
static int reopen_if_replaced(struct source *, struct err *);
static int open_roster(struct source *, const char *path, struct err *);
static void close_both(struct source *);

struct source *
source_new(const struct state *st, struct err *e)
{
	struct source *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		err_set(e, ERR_LOCAL, "out of memory");
		return NULL;
	}
	s->state = *st;
	s->file = STATE_N_FILES;
	return s;
}

void
source_free(struct source *s)
{
	if (s == NULL)
		return;
	close_both(s);
	free(s);
}

int
source_revision(struct source *s, int64_t *revision, struct err *e)
{
	if (choose(s, e) == -1 || reopen_if_replaced(s, e) == -1)
		return -1;
	if (s->registry == NULL) {
		*revision = roster_revision(s->roster);
		return 0;
	}
	if (registry_revision(s->registry, revision, e) == 0)
		return 0;
	close_both(s); /* damaged in place: the next look opens it anew */
	return -1;
}

bool
source_is_registry(const struct source *s)
{
	return s->registry != NULL;
}

int
source_begin(struct source *s, struct err *e)
{
	return s->registry != NULL ? registry_snapshot(s->registry, e) : 0;
}

void
source_end(struct source *s)
{
	if (s->registry != NULL)
		registry_snapshot_end(s->registry);
}

int
source_settings(struct source *s, struct settings *out, struct err *e)
{
	return s->registry != NULL ? settings_load(s->registry, out, e) :
				     roster_settings(s->roster, out, e);
}

int
source_each_role(struct source *s, role_fn *fn, void *arg, struct err *e)
{
	return s->registry != NULL ? roles_each(s->registry, fn, arg, e) :
				     roster_each_role(s->roster, fn, arg, e);
}

int
source_each_node(struct source *s, node_fn *fn, void *arg, struct err *e)
{
	return s->registry != NULL ? nodes_each(s->registry, fn, arg, e) :
				     roster_each_node(s->roster, fn, arg, e);
}

int
source_each_site(struct source *s, site_fn *fn, void *arg, struct err *e)
{
	return s->registry != NULL ? sites_each(s->registry, fn, arg, e) :
				     roster_each_site(s->roster, fn, arg, e);
}

int
source_each_site_cert(struct source *s, site_cert_fn *fn, void *arg,
    struct err *e)
{
	return s->registry != NULL ?
	    site_certs_each(s->registry, NULL, fn, arg, e) :
	    roster_each_site_cert(s->roster, fn, arg, e);
}

/* Once: a master whose registry is away does not fall back to the roster,
 * which may be older than what is in force. */
static int
choose(struct source *s, struct err *e)
{
	if (s->file != STATE_N_FILES)
		return 0;
	if (state_has(&s->state, STATE_REGISTRY))
		s->file = STATE_REGISTRY;
	else if (state_has(&s->state, STATE_ROSTER))
		s->file = STATE_ROSTER;
	else
		return err_set(e, ERR_LOCAL,
		    "%s holds neither a registry nor a roster (make a cluster "
		    "with clusterctl init, or join one with nodeagent join)",
		    s->state.dir);
	return 0;
}

/* A roster is always replaced whole; a registry only by a restored backup,
 * and then the open handle would show the old one for ever. */
static int
reopen_if_replaced(struct source *s, struct err *e)
{
	char path[PATH_MAX];
	struct stat sb;

	state_path(&s->state, s->file, path);
	if (stat(path, &sb) == -1)
		return err_errno(e, ERR_LOCAL, "cannot find %s", path);
	if ((s->registry != NULL || s->roster != NULL) &&
	    sb.st_ino == s->seen.st_ino && sb.st_dev == s->seen.st_dev)
		return 0;
	close_both(s);
	if (s->file == STATE_REGISTRY)
		s->registry = registry_open(path, REGISTRY_READ, e);
	else
		open_roster(s, path, e);
	if (s->registry == NULL && s->roster == NULL)
		return -1;
	s->seen = sb;
	return 0;
}

static int
open_roster(struct source *s, const char *path, struct err *e)
{
	char pub_path[PATH_MAX], *pub;
	size_t size;

	state_path(&s->state, STATE_AUTHORITY_PUB, pub_path);
	if (io_read_file(pub_path, KEY_SIZE, &pub, &size, e) == -1)
		return -1;
	if (size == KEY_SIZE)
		s->roster = roster_open(path, (const uint8_t *)pub, e);
	else
		err_set(e, ERR_CORRUPT, "%s is damaged", pub_path);
	free(pub);
	return s->roster == NULL ? -1 : 0;
}

static void
close_both(struct source *s)
{
	registry_close(s->registry);
	roster_close(s->roster);
	s->registry = NULL;
	s->roster = NULL;
}
