/* verb_roster.c: the verbs roster (hand out the last good copy) and sync
 * (fetch a newer one). */
#include <limits.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/registry/roster.h"
#include "nodeagent/agent.h"
#include "nodeagent/journal.h"
#include "nodeagent/master.h"
#include "nodeagent/pull.h"
#include "nodeagent/session.h"
#include "nodeagent/twin.h"
#include "nodeagent/verbs.h"

#define CHUNK (32 * 1024)

/* A roster on its way to a peer. */
struct sending {
	struct session *session;
	struct roster *roster;
	size_t offset;
};

/* A peer that waits until a revision is here. */
struct waiting {
	struct session *session;
	uint64_t id;
};

static void note_sight(struct session *, json_t *args);
static int send_roster(struct session *, struct err *);
static void sending_go_on(void *arg);
static void sending_lost(enum task_loss, void *arg);
static void sending_free(struct sending *);
static void waiting_done(const struct err *why, void *arg);
static void waiting_lost(enum task_loss, void *arg);
static json_t *revision_of(const struct agent *);

static const struct task_ops sending_task = {
	.drained = sending_go_on,
	.lost = sending_lost,
};

static const struct task_ops waiting_task = {
	.lost = waiting_lost,
};

int
verb_roster(struct session *s, json_t *args, struct err *e)
{
	struct agent *a = session_agent(s);
	int64_t have;

	if (json_opt_int(args, "have", 0, INT64_MAX, 0, &have, e) == -1)
		return -1;
	if (a->master != NULL) {
		note_sight(s, args);
		if (master_refresh(a->master, e) == -1 && e->code != ERR_LOCKED)
			return -1;
	}
	if (have < a->view.revision)
		return send_roster(s, e);
	session_reply(s,
	    json_pack("{s:I, s:b}", "revision", (json_int_t)a->view.revision,
		"same", 1));
	return 0;
}

int
verb_sync(struct session *s, json_t *args, struct err *e)
{
	struct agent *a = session_agent(s);
	struct waiting *w;
	int64_t revision;

	if (json_opt_int(args, "revision", 0, INT64_MAX, 0, &revision, e) == -1)
		return -1;
	if (a->master != NULL && master_refresh(a->master, e) == -1)
		return -1;
	if (a->master != NULL ||
	    (revision != 0 && a->view.revision >= revision)) {
		session_reply(s, revision_of(a));
		return 0;
	}
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a sync");
	w->session = s;
	w->id = pull_wait(a->pull, revision, waiting_done, w, e);
	if (w->id == 0) {
		free(w);
		return -1;
	}
	session_run(s, &waiting_task, w);
	return 0;
}

/* Nodes call each minute, with their time and version: that is how a master
 * knows when each was last seen. */
static void
note_sight(struct session *s, json_t *args)
{
	struct agent *a = session_agent(s);
	const struct cert *peer = session_peer(s);
	struct sighting g = { .name = peer->name,
		.from = channel_addr(session_channel(s)) };
	int64_t time_ms;
	json_t *about;
	struct err e;

	if (peer->kind != CERT_NODE ||
	    json_get_int(args, "time_ms", 0, INT64_MAX, &time_ms, &e) == -1 ||
	    json_opt_string(args, "version", NODE_VERSION_LEN, "", &g.version,
		&e) == -1 ||
	    json_opt_string(args, "run", TWIN_WORD_LEN, "", &g.run, &e) == -1)
		return;
	g.skew_ms = time_ms - clock_wall_ms();
	if (!master_saw(a->master, &g))
		return;
	about = json_pack("{s:s}", "name", g.name);
	journal_note(a->journal, s, "copied", about);
	json_decref(about);
}

static int
send_roster(struct session *s, struct err *e)
{
	struct agent *a = session_agent(s);
	struct sending *t = calloc(1, sizeof(*t));
	char path[PATH_MAX];

	if (t == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a roster");
	t->session = s;
	t->roster = roster_open(state_path(&a->state, STATE_ROSTER, path),
	    a->identity.authority, e);
	if (t->roster == NULL) {
		free(t);
		return -1;
	}
	session_run(s, &sending_task, t);
	sending_go_on(t);
	return 0;
}

static void
sending_go_on(void *arg)
{
	struct sending *t = arg;
	uint8_t buf[CHUNK];
	struct err e;
	ssize_t n;

	while (session_has_room(t->session)) {
		n = roster_read(t->roster, t->offset, buf, sizeof(buf), &e);
		if (n == -1)
			session_fail(t->session, &e);
		else if (n == 0)
			session_reply(t->session,
			    json_pack("{s:I}", "revision",
				(json_int_t)roster_revision(t->roster)));
		if (n <= 0) {
			sending_free(t);
			return;
		}
		t->offset += (size_t)n;
		session_send(t->session, REC_FILE, buf, (size_t)n);
	}
}

static void
sending_lost(enum task_loss how, void *arg)
{
	(void)how;
	sending_free(arg);
}

static void
sending_free(struct sending *t)
{
	roster_close(t->roster);
	free(t);
}

static void
waiting_done(const struct err *why, void *arg)
{
	struct waiting *w = arg;

	if (why != NULL)
		session_fail(w->session, why);
	else
		session_reply(w->session,
		    revision_of(session_agent(w->session)));
	free(w);
}

static void
waiting_lost(enum task_loss how, void *arg)
{
	struct waiting *w = arg;

	(void)how;
	pull_forget(session_agent(w->session)->pull, w->id);
	free(w);
}

static json_t *
revision_of(const struct agent *a)
{
	return json_pack("{s:I}", "revision", (json_int_t)a->view.revision);
}
