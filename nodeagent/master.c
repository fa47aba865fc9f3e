/* master.c: see master.h. */
#include "nodeagent/master.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/authority.h"
#include "common/registry/roster.h"
#include "common/registry/tokens.h"
#include "nodeagent/agent.h"
#include "nodeagent/tell.h"
#include "nodeagent/twin.h"

#define LOOK_MS	      200 /* how often the registry's revision is looked at */
#define SIGHTS_MAX    16384
#define SIGHTS_SAVE_S 60

/* When a node last called. */
struct sight {
	struct node_sight seen;
	struct twin twin;
	bool saved; /* in the registry */
};

struct master {
	struct agent *agent;
	struct registry *registry;
	uint8_t *secret; /* sodium_malloc; NULL: locked */
	struct tell *tell;
	struct event *look, *save;
	bool failing; /* said so already */
	size_t n_sights, n_unsaved;
	struct sight *sights;
};

static void warn_of_twin(struct master *, const struct sighting *,
    const struct addr *other);
static int open_secret(struct master *, const char *passphrase, struct err *);
static int sign_roster(struct master *, struct err *);
static void look_due(evutil_socket_t, short, void *);
static void save_due(evutil_socket_t, short, void *);
static struct sight *find_sight(struct master *, const char *name);

struct master *
master_new(struct agent *a, struct err *e)
{
	static const struct timeval look = { 0, LOOK_MS * 1000 };
	static const struct timeval save = { SIGHTS_SAVE_S, 0 };
	struct master *m = calloc(1, sizeof(*m));
	char path[PATH_MAX];

	if (m == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the registry");
		return NULL;
	}
	m->agent = a;
	m->registry = registry_open(state_path(&a->state, STATE_REGISTRY, path),
	    REGISTRY_WRITE, e);
	if (m->registry == NULL)
		goto fail;
	registry_set_actor(m->registry, "nodeagent");
	if (open_secret(m, NULL, e) == -1) {
		if (e->code != ERR_LOCKED)
			goto fail;
		log_info("the authority key is locked; new nodes wait until "
			 "clusterctl unlock");
	}
	if ((m->tell = tell_new(a, e)) == NULL)
		goto fail;
	m->look = event_new(a->base, -1, EV_PERSIST, look_due, m);
	m->save = event_new(a->base, -1, EV_PERSIST, save_due, m);
	if (m->look == NULL || m->save == NULL ||
	    event_add(m->look, &look) == -1 ||
	    event_add(m->save, &save) == -1) {
		err_set(e, ERR_LOCAL, "out of memory for the registry");
		goto fail;
	}
	return m;
fail:
	master_free(m);
	return NULL;
}

void
master_free(struct master *m)
{
	if (m == NULL)
		return;
	if (m->registry != NULL)
		save_due(-1, 0, m);
	if (m->look != NULL)
		event_free(m->look);
	if (m->save != NULL)
		event_free(m->save);
	tell_free(m->tell);
	sodium_free(m->secret);
	registry_close(m->registry);
	free(m->sights);
	free(m);
}

struct registry *
master_registry(struct master *m)
{
	return m->registry;
}

int
master_unlock(struct master *m, const char *passphrase, struct err *e)
{
	if (m->secret != NULL)
		return 0;
	if (open_secret(m, passphrase, e) == -1)
		return -1;
	log_info("the authority key is open");
	return master_refresh(m, e);
}

const uint8_t *
master_secret(struct master *m, struct err *e)
{
	if (m->secret == NULL)
		err_set(e, ERR_LOCKED,
		    "the authority key of master %s is locked (there: "
		    "clusterctl unlock)",
		    m->agent->view.name);
	return m->secret;
}

int
master_refresh(struct master *m, struct err *e)
{
	int64_t revision;

	if (registry_revision(m->registry, &revision, e) == -1)
		return -1;
	if (revision == m->agent->view.revision)
		return 0;
	return sign_roster(m, e);
}

int
master_join_psk(struct master *m, const uint8_t id[TOKEN_ID_SIZE],
    const struct addr *from, uint8_t psk[KEY_SIZE], struct err *e)
{
	struct token_row row;
	struct cidr range;

	if (tokens_get(m->registry, id, &row, e) == -1)
		return -1;
	memcpy(psk, row.psk, KEY_SIZE);
	secret_wipe(row.psk, sizeof(row.psk));
	if (row.from[0] != '\0' &&
	    (cidr_parse(row.from, &range, e) == -1 ||
		!cidr_contains(&range, from)))
		return err_set(e, ERR_DENIED,
		    "this token is for joining from %s only", row.from);
	/* Whether it is used up or expired is join_node()'s question: the
	 * same machine may come again to finish. */
	return 0;
}

int
master_renew_node(struct master *m, const uint8_t key[KEY_SIZE],
    struct issued *out, struct err *e)
{
	const uint8_t *secret = master_secret(m, e);
	struct node n;

	if (secret == NULL || nodes_get_key(m->registry, key, &n, e) == -1)
		return -1;
	return issue_node(m->registry, n.name, key, secret,
	    clock_wall_ms() / 1000, out, e);
}

bool
master_saw(struct master *m, const struct sighting *g)
{
	struct sight *s = find_sight(m, g->name);
	struct addr other;

	if (s == NULL)
		return false;
	s->seen.at_ms = clock_wall_ms();
	s->seen.skew_ms = g->skew_ms;
	snprintf(s->seen.version, sizeof(s->seen.version), "%s", g->version);
	s->saved = false;
	m->n_unsaved++;
	if (!twin_called(&s->twin, g->run, g->from, clock_mono_ms(), &other))
		return false;
	warn_of_twin(m, g, &other);
	return true;
}

json_t *
master_sights(const struct master *m)
{
	json_t *nodes = json_object();

	for (size_t i = 0; i < m->n_sights; i++) {
		const struct node_sight *s = &m->sights[i].seen;

		json_object_set_new(nodes, s->name,
		    json_pack("{s:I, s:I, s:s}", "at_ms", (json_int_t)s->at_ms,
			"skew_ms", (json_int_t)s->skew_ms, "version",
			s->version));
	}
	return json_pack("{s:o}", "nodes", nodes);
}

/* For a person to see: clusterctl node conflicts.  Which of the two is the
 * copy nobody can tell but by the address that the node should have. */
static void
warn_of_twin(struct master *m, const struct sighting *g,
    const struct addr *other)
{
	char here[ADDR_TEXT_MAX], there[ADDR_TEXT_MAX];
	struct node n = { .addr = "" };
	struct err e;
	bool is_own;

	addr_format_ip(g->from, here);
	addr_format_ip(other, there);
	is_own = nodes_get(m->registry, g->name, &n, &e) == 0 &&
	    strcmp(here, n.addr) == 0;
	log_warn("two machines have the key of %s, at %s and %s (clusterctl "
		 "node remove %s, then enroll each anew)",
	    g->name, here, there, g->name);
	if (conflicts_note_copy(m->registry, g->name, is_own ? other : g->from,
		clock_wall_ms(), &e) == -1)
		log_warn("%s", e.text);
}

static int
open_secret(struct master *m, const char *passphrase, struct err *e)
{
	uint8_t *secret = sodium_malloc(AUTHORITY_SECRET_SIZE);

	if (secret == NULL)
		return err_set(e, ERR_LOCAL,
		    "no locked memory for the authority key");
	/* A passphrase takes about a second on the loop; that is rare, and
	 * somebody waits for it. */
	if (authority_load(&m->agent->state, passphrase, secret, e) == -1) {
		sodium_free(secret);
		return -1;
	}
	m->secret = secret;
	return 0;
}

static int
sign_roster(struct master *m, struct err *e)
{
	const uint8_t *secret = master_secret(m, e);
	struct agent *a = m->agent;
	char path[PATH_MAX];

	if (secret == NULL)
		return -1;
	if (roster_write(m->registry, secret, clock_wall_ms() / 1000,
		state_path(&a->state, STATE_ROSTER, path), e) == -1 ||
	    agent_adopt_roster(a, e) == -1)
		return -1;
	tell_changed(m->tell);
	return 0;
}

static void
look_due(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;
	struct err e;

	(void)fd;
	(void)what;
	if (master_refresh(m, &e) == 0) {
		m->failing = false;
		return;
	}
	if (!m->failing)
		log_warn("no new roster: %s", e.text);
	m->failing = true;
}

/* What was seen is worth little: it is written now and then, all at once. */
static void
save_due(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;
	struct err e;
	int rv = 0;

	(void)fd;
	(void)what;
	if (m->n_unsaved == 0 || registry_begin_note(m->registry, &e) == -1)
		return;
	for (size_t i = 0; i < m->n_sights && rv == 0; i++)
		if (!m->sights[i].saved)
			rv = nodes_saw(m->registry, &m->sights[i].seen, &e);
	if (registry_end(m->registry, rv, &e) == -1) {
		log_debug("%s", e.text);
		return;
	}
	for (size_t i = 0; i < m->n_sights; i++)
		m->sights[i].saved = true;
	m->n_unsaved = 0;
}

static struct sight *
find_sight(struct master *m, const char *name)
{
	struct sight *more;

	for (size_t i = 0; i < m->n_sights; i++)
		if (strcmp(m->sights[i].seen.name, name) == 0)
			return &m->sights[i];
	if (m->n_sights == SIGHTS_MAX)
		return NULL;
	more = realloc(m->sights, (m->n_sights + 1) * sizeof(*more));
	if (more == NULL)
		return NULL;
	m->sights = more;
	more += m->n_sights++;
	memset(more, 0, sizeof(*more));
	snprintf(more->seen.name, sizeof(more->seen.name), "%s", name);
	return more;
}
