/* fetch.c: see fetch.h. */
#include "nodeagent/fetch.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/enroll/issue.h"
#include "common/registry/roster.h"
#include "nodeagent/agent.h"
#include "nodeagent/call.h"
#include "nodeagent/frugal.h"

#define AGAIN_S 30 /* after a failure, give or take a third */

/* A file that a certificate of the roster needs. */
struct file {
	uint8_t hash[CUSTODY_HASH];
	uint8_t kind; /* enum custody_kind */
	bool is_here;
};

struct fetch {
	struct agent *agent;
	struct event *due;
	struct call *call; /* NULL: none under way */
	bool again;	   /* the roster has changed meanwhile */
	bool failing;	   /* said so already */
	struct custody custody;
	/* Of one pass: all files, by hash; how far it got. */
	struct file *files;
	size_t n_files, room, next;
	size_t n_asked; /* from next on, those that are not here */
	size_t n_lacking;
	size_t master; /* that is asked: an index of the view */
	uint8_t *answer;
	size_t answer_size;
};

static void due(evutil_socket_t, short, void *);
static void schedule(struct fetch *, unsigned s);
static int begin(struct fetch *, struct err *);
static int list_files(struct fetch *, struct err *);
static site_cert_fn note_files;
static int add_file(struct fetch *, enum custody_kind, const uint8_t *hash);
static void go_on(struct fetch *);
static void ask(struct fetch *);
static json_t *question(struct fetch *);
static int call_file(const uint8_t *, size_t, void *arg, struct err *);
static void call_done(json_t *reply, const struct err *why, int64_t skew_ms,
    void *arg);
static int take_answer(struct fetch *, json_t *reply, struct err *);
static void end(struct fetch *, const struct err *why);
static void forget(struct fetch *);
static bool is_used(enum custody_kind, const uint8_t *hash, void *fetch);
static int compare(const void *, const void *);

static const struct call_handlers fetch_call = {
	.file = call_file,
	.done = call_done,
};

struct fetch *
fetch_new(struct agent *a, struct err *e)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (f == NULL || (f->due = evtimer_new(a->base, due, f)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for fetching keys");
		free(f);
		return NULL;
	}
	f->agent = a;
	f->custody.dir = -1;
	fetch_now(f);
	return f;
}

void
fetch_free(struct fetch *f)
{
	if (f == NULL)
		return;
	call_cancel(f->call);
	forget(f);
	event_free(f->due);
	free(f);
}

void
fetch_now(struct fetch *f)
{
	if (f->call != NULL)
		f->again = true;
	else
		schedule(f, 0);
}

static void
schedule(struct fetch *f, unsigned s)
{
	struct timeval tv = { .tv_sec = s };

	/* Those that were told together do not come together. */
	if (s > 0)
		tv.tv_sec += randombytes_uniform(s / 3 + 1);
	evtimer_add(f->due, &tv);
}

static void
due(evutil_socket_t fd, short what, void *arg)
{
	struct fetch *f = arg;
	struct err e;

	(void)fd;
	(void)what;
	f->again = false;
	/* Where the registry is, clusterctl looks after custody. */
	if (f->call != NULL || f->agent->master != NULL)
		return;
	if (begin(f, &e) == -1)
		end(f, &e);
	else
		go_on(f);
}

/* ---- what the roster names --------------------------------------------- */

static int
begin(struct fetch *f, struct err *e)
{
	struct agent *a = f->agent;

	if (!issue_roles_may(a->view.roles, "custody") &&
	    !state_has(&a->state, STATE_TLS))
		return 0;
	if (custody_open(&f->custody, &a->state, e) == -1)
		return -1;
	if (issue_roles_may(a->view.roles, "custody") && list_files(f, e) == -1)
		return -1;
	if (f->n_files > 0)
		qsort(f->files, f->n_files, sizeof(*f->files), compare);
	for (size_t i = 0; i < f->n_files; i++)
		f->files[i].is_here = custody_has(&f->custody,
		    (enum custody_kind)f->files[i].kind, f->files[i].hash);
	return 0;
}

static int
list_files(struct fetch *f, struct err *e)
{
	struct agent *a = f->agent;
	struct roster *r;
	char path[PATH_MAX];
	int rv;

	r = roster_open(state_path(&a->state, STATE_ROSTER, path),
	    a->identity.authority, e);
	if (r == NULL)
		return -1;
	e->code = ERR_NONE;
	rv = roster_each_site_cert(r, note_files, f, e);
	if (rv != 0 && e->code == ERR_NONE)
		err_set(e, ERR_LOCAL, "out of memory for fetching keys");
	roster_close(r);
	return rv == 0 ? 0 : -1;
}

static int
note_files(const struct site_cert *c, void *arg)
{
	struct fetch *f = arg;

	if (add_file(f, CUSTODY_CHAIN, c->chain) == -1 ||
	    add_file(f, CUSTODY_KEY, c->key) == -1)
		return -1;
	return c->has_staple ? add_file(f, CUSTODY_STAPLE, c->staple) : 0;
}

static int
add_file(struct fetch *f, enum custody_kind kind, const uint8_t *hash)
{
	struct file *more;

	if (f->n_files == f->room) {
		f->room = f->room == 0 ? 64 : f->room * 2;
		more = reallocarray(f->files, f->room, sizeof(*more));
		if (more == NULL)
			return -1;
		f->files = more;
	}
	memset(&f->files[f->n_files], 0, sizeof(*f->files));
	memcpy(f->files[f->n_files].hash, hash, CUSTODY_HASH);
	f->files[f->n_files++].kind = (uint8_t)kind;
	return 0;
}

/* ---- what is not here -------------------------------------------------- */

static void
go_on(struct fetch *f)
{
	struct err e;

	while (f->next < f->n_files && f->files[f->next].is_here)
		f->next++;
	if (f->next < f->n_files) {
		f->master = 0;
		ask(f);
	} else if (f->n_lacking > 0) {
		err_set(&e, ERR_NO_TARGET,
		    "the master lacks %zu file(s) of certificates, or cannot "
		    "read them (there: clusterctl certs, and the agent's log)",
		    f->n_lacking);
		end(f, &e);
	} else
		end(f, NULL);
}

/* The next master in line. */
static void
ask(struct fetch *f)
{
	struct agent *a = f->agent;
	struct err e;

	err_set(&e, ERR_UNREACHABLE, "there is no master to ask");
	while (f->call == NULL && f->master < a->view.n_masters) {
		const struct view_master *m = &a->view.masters[f->master++];

		if (!m->is_self)
			f->call = call_start(a->base, &m->addr, &a->identity,
			    m->key, NULL, question(f), &fetch_call, f, &e);
	}
	if (f->call == NULL)
		end(f, &e);
}

static json_t *
question(struct fetch *f)
{
	json_t *names = json_array();
	char name[CUSTODY_NAME_MAX];

	f->n_asked = 0;
	for (size_t i = f->next; i < f->n_files && f->n_asked < FETCH_FILES;
	     i++) {
		if (f->files[i].is_here)
			continue;
		custody_name((enum custody_kind)f->files[i].kind,
		    f->files[i].hash, name);
		json_array_append_new(names, json_string(name));
		f->n_asked++;
	}
	return json_pack("{s:s, s:o}", "verb", "custody", "files", names);
}

static int
call_file(const uint8_t *bytes, size_t size, void *arg, struct err *e)
{
	struct fetch *f = arg;

	if (f->answer == NULL && (f->answer = malloc(FETCH_SIZE)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for fetching keys");
	if (size > FETCH_SIZE - f->answer_size)
		return err_set(e, ERR_PROTOCOL, "the answer is too long");
	memcpy(f->answer + f->answer_size, bytes, size);
	f->answer_size += size;
	return 0;
}

static void
call_done(json_t *reply, const struct err *why, int64_t skew_ms, void *arg)
{
	struct fetch *f = arg;
	const struct view *v = &f->agent->view;
	struct err e = { 0 };
	int rv = 0;

	(void)skew_ms;
	f->call = NULL;
	if (why != NULL) {
		e = *why;
		rv = -1;
	} else
		rv = take_answer(f, reply, &e);
	if (f->answer != NULL)
		sodium_memzero(f->answer, f->answer_size);
	f->answer_size = 0;
	if (f->again) {
		/* By the new roster, from the start. */
		forget(f);
		schedule(f, 0);
	} else if (rv == 0)
		go_on(f);
	else if (f->master < v->n_masters)
		ask(f);
	else
		end(f, &e);
}

/* Each file is checked against its name before it is written.  It does not
 * wait for the disk, which ten thousand of them would do for minutes. */
static int
take_answer(struct fetch *f, json_t *reply, struct err *e)
{
	json_t *sizes = json_object_get(reply, "sizes"); /* borrowed */
	size_t n = json_array_size(sizes), at = 0;

	if (n == 0 || n > f->n_asked)
		return err_set(e, ERR_PROTOCOL, "the answer has no sizes");
	for (size_t i = 0; i < n; f->next++) {
		struct file *x = &f->files[f->next];
		int64_t size;

		if (x->is_here)
			continue;
		size = json_integer_value(json_array_get(sizes, i++));
		if (size == -1) {
			f->n_lacking++;
			continue;
		}
		if (size <= 0 || (size_t)size > f->answer_size - at)
			return err_set(e, ERR_PROTOCOL,
			    "the answer's sizes are wrong");
		if (custody_write(&f->custody, (enum custody_kind)x->kind,
			x->hash, f->answer + at, (size_t)size, false, e) == -1)
			return -1;
		x->is_here = true;
		at += (size_t)size;
	}
	return 0;
}

/* ---- the end of a pass ------------------------------------------------- */

static void
end(struct fetch *f, const struct err *why)
{
	struct err e;

	if (why == NULL && f->custody.dir != -1 &&
	    custody_sweep(&f->custody, is_used, f, &e) == -1)
		why = &e;
	if (why != NULL && !f->failing)
		log_warn("keys of certificates: %s; trying again", why->text);
	else if (why == NULL && f->failing)
		log_info("the keys of all certificates are here");
	f->failing = why != NULL;
	forget(f);
	frugal_trim();
	if (why != NULL)
		schedule(f, AGAIN_S);
}

static void
forget(struct fetch *f)
{
	free(f->files);
	free(f->answer);
	f->files = NULL;
	f->answer = NULL;
	f->n_files = f->room = f->next = f->n_lacking = f->answer_size = 0;
	custody_close(&f->custody);
}

static bool
is_used(enum custody_kind kind, const uint8_t *hash, void *arg)
{
	const struct fetch *f = arg;
	struct file key = { .kind = (uint8_t)kind };

	memcpy(key.hash, hash, CUSTODY_HASH);
	return f->n_files > 0 &&
	    bsearch(&key, f->files, f->n_files, sizeof(key), compare) != NULL;
}

static int
compare(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	int order = memcmp(x->hash, y->hash, CUSTODY_HASH);

	return order != 0 ? order : (int)x->kind - (int)y->kind;
}
