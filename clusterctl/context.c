/* context.c: see context.h. */
#include "clusterctl/context.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/load.h"
#include "clusterctl/output.h"
#include "clusterctl/upkeep.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/text.h"
#include "common/net/authority.h"
#include "common/net/identity.h"

/* What needs no quotes; ranges stay readable. */
#define PLAIN                                                            \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" \
	"@%+=:,./_-[]"

struct context {
	char *state_dir, *typed;
	char actor[NAME_MAX_LEN + 16]; /* of changes */
	unsigned open;		       /* NEEDS_* bits already there */
	struct state state;
	struct registry *registry;
	struct roster *roster;
	struct directory *directory;
	struct channel_identity identity;
	struct cert operator;
	struct event_base *base;
};

static char *put_quoted(char *, const char *word);
static const char *env_value(const char *before, const char *word);
static bool is_env_option(const char *word, size_t len);
static int need_state(struct context *, struct err *);
static int need_registry(struct context *, struct err *);
static int need_view(struct context *, struct err *);
static int need_cluster(struct context *, struct err *);
static int need_operator(struct context *, struct err *);
static int fall_back(struct context *, struct err *);
static int open_roster(struct context *, struct err *);
static int open_registry(struct context *, enum registry_mode, struct err *);
static int refuse_change(struct context *, struct err *);
static void set_actor(struct context *);
static bool keeps_own_roster(const struct context *);
static int look_after(struct context *, struct err *);
static int refresh(struct context *, struct err *);

/* In the order of opening. */
static const struct {
	unsigned bit;
	int (*open)(struct context *, struct err *);
} needs_table[] = {
	{ NEEDS_STATE, need_state },
	{ NEEDS_REGISTRY, need_registry },
	{ NEEDS_VIEW, need_view },
	{ NEEDS_CLUSTER, need_cluster },
	{ NEEDS_OPERATOR, need_operator },
};

struct context *
context_new(const char *state, const char *typed)
{
	struct context *cx = xcalloc(1, sizeof(*cx));

	cx->state_dir = xstrdup(state_dir(state));
	cx->typed = xstrdup(typed);
	return cx;
}

void
context_free(struct context *cx)
{
	if (cx == NULL)
		return;
	registry_close(cx->registry);
	roster_close(cx->roster);
	directory_free(cx->directory);
	identity_wipe(&cx->identity);
	if (cx->base != NULL)
		event_base_free(cx->base);
	free(cx->state_dir);
	free(cx->typed);
	free(cx);
}

int
context_need(struct context *cx, unsigned needs, struct err *e)
{
	unsigned before = cx->open;

	if (needs != NEEDS_NOTHING)
		needs |= NEEDS_STATE;
	if ((needs & NEEDS_CLUSTER) != 0)
		needs |= NEEDS_VIEW;
	for (size_t i = 0; i < nitems(needs_table); i++) {
		unsigned bit = needs_table[i].bit;

		if ((needs & bit) == 0 || (cx->open & bit) != 0)
			continue;
		if (needs_table[i].open(cx, e) == -1)
			return -1;
		cx->open |= bit;
	}
	return cx->open != before ? look_after(cx, e) : 0;
}

int
context_refresh(struct context *cx, struct err *e)
{
	if (cx->roster != NULL && open_roster(cx, e) == -1)
		return -1;
	if ((cx->open & NEEDS_CLUSTER) != 0 && need_cluster(cx, e) == -1)
		return -1;
	return look_after(cx, e);
}

const struct state *
context_state(const struct context *cx)
{
	return &cx->state;
}

const struct directory *
context_directory(const struct context *cx)
{
	return cx->directory;
}

struct registry *
context_registry(const struct context *cx)
{
	return cx->registry;
}

struct roster *
context_roster(const struct context *cx)
{
	return cx->roster;
}

const char *
context_actor(const struct context *cx)
{
	return cx->actor;
}

const struct channel_identity *
context_identity(const struct context *cx)
{
	return &cx->identity;
}

const struct cert *
context_operator(const struct context *cx)
{
	return &cx->operator;
}

int
context_be_node(struct context *cx, struct err *e)
{
	return identity_load(&cx->state, CERT_NODE, clock_wall_ms() / 1000,
	    &cx->identity, NULL, e);
}

const char *
context_state_dir(const struct context *cx)
{
	return cx->state_dir;
}

const char *
context_typed(const struct context *cx)
{
	return cx->typed;
}

struct event_base *
context_base(struct context *cx)
{
	if (cx->base == NULL)
		cx->base = event_base_new();
	return cx->base;
}

char *
context_quote(int argc, char *const *argv)
{
	const char *value;
	size_t size = 1;
	char *text, *p;

	for (int i = 0; i < argc; i++)
		size += 4 * strlen(argv[i]) + 6;
	p = text = xcalloc(1, size);
	for (int i = 0; i < argc; i++) {
		if (i > 0)
			*p++ = ' ';
		value = env_value(i > 0 ? argv[i - 1] : "", argv[i]);
		if (value != NULL)
			p = stpcpy(mempcpy(p, argv[i],
				       (size_t)(value - argv[i])),
			    "***");
		else
			p = put_quoted(p, argv[i]);
	}
	/* It goes into JSON, whose texts are UTF-8. */
	if (!text_is_utf8(text, strlen(text)))
		for (p = text; *p != '\0'; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	return text;
}

static char *
put_quoted(char *p, const char *word)
{
	if (*word != '\0' && strspn(word, PLAIN) == strlen(word))
		return stpcpy(p, word);
	*p++ = '\'';
	for (; *word != '\0'; word++)
		if (*word == '\'')
			p = stpcpy(p, "'\\''");
		else
			*p++ = *word;
	*p++ = '\'';
	*p = '\0';
	return p;
}

/* Where the value of a variable begins, in any of the ways to write it:
 * "-e N=V", "-qeN=V", "--env=N=V", "--en N=V"; NULL: nowhere. */
static const char *
env_value(const char *before, const char *word)
{
	const char *name = NULL, *value;

	if (is_env_option(before, strlen(before)))
		name = word;
	else if (is_env_option(word, strcspn(word, "=")))
		name = strchr(word, '=') != NULL ? strchr(word, '=') + 1 : NULL;
	else if (word[0] == '-' && word[1] != '-' && strchr(word, 'e') != NULL)
		name = strchr(word, 'e') + 1;
	value = name != NULL ? strchr(name, '=') : NULL;
	return value != NULL && text_is_env_name(name, (size_t)(value - name)) ?
	    value + 1 :
	    NULL;
}

static bool
is_env_option(const char *word, size_t len)
{
	static const char name[] = "--env";

	if (len < 2 || word[0] != '-')
		return false;
	if (word[1] != '-')
		return word[len - 1] == 'e';
	return len > 2 && len < sizeof(name) && strncmp(word, name, len) == 0;
}

static int
need_state(struct context *cx, struct err *e)
{
	return state_open(&cx->state, cx->state_dir, e);
}

static int
need_registry(struct context *cx, struct err *e)
{
	if (!state_has(&cx->state, STATE_REGISTRY))
		return refuse_change(cx, e);
	if (open_registry(cx, REGISTRY_WRITE, e) == -1)
		return -1;
	set_actor(cx);
	return 0;
}

static int
need_view(struct context *cx, struct err *e)
{
	if (cx->registry != NULL)
		return 0;
	if (!state_has(&cx->state, STATE_REGISTRY))
		return open_roster(cx, e);
	if (open_registry(cx, REGISTRY_READ, e) == 0)
		return 0;
	return fall_back(cx, e);
}

/* A full disk or a damaged registry stops changes, not orders. */
static int
fall_back(struct context *cx, struct err *e)
{
	struct err why = *e;

	if (!state_has(&cx->state, STATE_ROSTER) || open_roster(cx, e) == -1) {
		*e = why;
		return -1;
	}
	output_note("%s; going by the roster, revision %lld", why.text,
	    (long long)roster_revision(cx->roster));
	return 0;
}

static int
need_cluster(struct context *cx, struct err *e)
{
	struct directory *d = cx->registry != NULL ?
	    load_registry(cx->registry, e) :
	    load_roster(cx->roster, e);

	if (d == NULL)
		return -1;
	directory_free(cx->directory);
	cx->directory = d;
	return 0;
}

static int
need_operator(struct context *cx, struct err *e)
{
	return identity_load(&cx->state, CERT_OPERATOR, clock_wall_ms() / 1000,
	    &cx->identity, &cx->operator, e);
}

/* Opens, or opens again what was refreshed. */
static int
open_roster(struct context *cx, struct err *e)
{
	uint8_t authority[KEY_SIZE];
	char path[PATH_MAX];
	struct roster *r;

	if (!state_has(&cx->state, STATE_ROSTER))
		return err_set(e, ERR_LOCAL,
		    "%s belongs to no cluster yet (clusterctl init makes one; "
		    "nodeagent join and clusterctl operator join enter one)",
		    cx->state.dir);
	if (authority_load_public(&cx->state, authority, e) == -1)
		return -1;
	state_path(&cx->state, STATE_ROSTER, path);
	if ((r = roster_open(path, authority, e)) == NULL)
		return -1;
	roster_close(cx->roster);
	cx->roster = r;
	return 0;
}

static int
open_registry(struct context *cx, enum registry_mode mode, struct err *e)
{
	char path[PATH_MAX];

	registry_close(cx->registry);
	state_path(&cx->state, STATE_REGISTRY, path);
	cx->registry = registry_open(path, mode, e);
	return cx->registry != NULL ? 0 : -1;
}

/* There is no registry here: says where there is one. */
static int
refuse_change(struct context *cx, struct err *e)
{
	const struct dir_node *n;
	char ip[ADDR_TEXT_MAX];

	if (open_roster(cx, e) == -1 || need_cluster(cx, e) == -1)
		return -1;
	for (size_t i = 0; (n = directory_at(cx->directory, i)) != NULL; i++) {
		if (!directory_node_has_role(n, ROLE_MASTER))
			continue;
		addr_format_ip(&n->addr, ip);
		return err_set(e, ERR_LOCAL,
		    "changes are made on a master: %s (%s)", n->name, ip);
	}
	return err_set(e, ERR_LOCAL, "changes are made on a master");
}

/* Whom the change log will name: the operator of this state directory, else
 * the account. */
static void
set_actor(struct context *cx)
{
	struct channel_identity id;
	const struct passwd *pw;
	struct cert c;
	struct err e;

	if (identity_load(&cx->state, CERT_OPERATOR, clock_wall_ms() / 1000,
		&id, &c, &e) == 0) {
		snprintf(cx->actor, sizeof(cx->actor), "operator %s", c.name);
		identity_wipe(&id);
	} else if ((pw = getpwuid(getuid())) != NULL) {
		snprintf(cx->actor, sizeof(cx->actor), "user %.60s",
		    pw->pw_name);
	} else {
		snprintf(cx->actor, sizeof(cx->actor), "uid %d", (int)getuid());
	}
	registry_set_actor(cx->registry, cx->actor);
}

/* A master has the registry; a node's agent keeps the roster fresh. */
static bool
keeps_own_roster(const struct context *cx)
{
	return cx->registry != NULL || state_has(&cx->state, STATE_NODE_CERT);
}

/* What is due.  A machine with nothing but an operator identity looks after
 * its roster itself, whatever the command needs. */
static int
look_after(struct context *cx, struct err *e)
{
	bool stale = cx->roster != NULL && !keeps_own_roster(cx) &&
	    upkeep_roster_due(cx);
	struct err ignored;

	if (stale && (cx->open & NEEDS_OPERATOR) == 0 &&
	    need_operator(cx, &ignored) == 0)
		cx->open |= NEEDS_OPERATOR;
	if ((cx->open & NEEDS_OPERATOR) == 0 || (cx->open & NEEDS_VIEW) == 0)
		return 0;
	stale = stale ||
	    upkeep_certificate_due(&cx->operator, clock_wall_ms() / 1000);
	if (stale && cx->directory == NULL && need_cluster(cx, e) == -1)
		return -1;
	return stale ? refresh(cx, e) : 0;
}

/* Both need the directory, to find the masters. */
static int
refresh(struct context *cx, struct err *e)
{
	if (cx->roster != NULL && !keeps_own_roster(cx) &&
	    upkeep_roster_due(cx) &&
	    upkeep_roster(cx, roster_revision(cx->roster)) &&
	    (open_roster(cx, e) == -1 || need_cluster(cx, e) == -1))
		return -1;
	if (!upkeep_certificate_due(&cx->operator, clock_wall_ms() / 1000))
		return 0;
	upkeep_certificate(cx);
	return need_operator(cx, e);
}
