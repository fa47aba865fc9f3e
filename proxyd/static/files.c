/* files.c: see files.h. */
#include "proxyd/static/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"

#define BUCKETS 2048 /* a power of two */

/* A path as one kind of client asks for it. */
struct entry {
	LIST_ENTRY(entry) chain; /* of its bucket */
	TAILQ_ENTRY(entry) age;	 /* the least recently used last */
	struct files *files;
	uint64_t hash;
	int64_t asked_ms, used_ms;
	struct file *file; /* NULL: still asked for */
	LIST_HEAD(, files_waiter) waiters;
	struct link_job job;
	size_t path_len;
	char *path, *site; /* behind the struct */
};

struct files {
	struct opener_link *opener;
	struct event *sweep;
	LIST_HEAD(, entry) buckets[BUCKETS];
	TAILQ_HEAD(entries, entry) by_age;
	unsigned n;
};

static struct entry *entry_find(struct files *, const struct files_ask *,
    uint64_t hash);
static struct entry *entry_new(struct files *, const struct files_ask *,
    uint64_t hash, int64_t now_ms);
static void entry_free(struct entry *);
static void on_answer(struct link_job *, struct link_answer *);
static struct file *file_new(struct link_answer *);
static void on_sweep(evutil_socket_t, short, void *);

struct files *
files_new(struct event_base *base, struct err *e)
{
	static const struct timeval second = { .tv_sec = 1 };
	struct files *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for static files");
		return NULL;
	}
	TAILQ_INIT(&f->by_age);
	if ((f->opener = opener_link_new(base, e)) == NULL) {
		files_free(f);
		return NULL;
	}
	f->sweep = event_new(base, -1, EV_PERSIST, on_sweep, f);
	if (f->sweep == NULL || event_add(f->sweep, &second) == -1) {
		err_set(e, ERR_LOCAL, "out of memory for static files");
		files_free(f);
		return NULL;
	}
	return f;
}

void
files_free(struct files *f)
{
	if (f == NULL)
		return;
	while (!TAILQ_EMPTY(&f->by_age))
		entry_free(TAILQ_FIRST(&f->by_age));
	if (f->sweep != NULL)
		event_free(f->sweep);
	opener_link_free(f->opener);
	free(f);
}

struct opener_link *
files_opener(struct files *f)
{
	return f->opener;
}

static uint64_t
hash_of(const struct files_ask *ask)
{
	const struct file_path *p = ask->path;
	uint64_t h = ask->site->files_key ^ (uint64_t)p->directory << 8 ^
	    (uint64_t)ask->wish.order[0] << 4 ^ (uint64_t)ask->wish.order[1];

	for (uint16_t i = 0; i < p->len; i++)
		h = (h ^ (unsigned char)p->text[i]) * 0x100000001b3;
	return h ^ h >> 29;
}

enum files_result
files_find(struct files *f, const struct files_ask *ask, int64_t now_ms,
    struct files_waiter *w, struct file **out)
{
	uint64_t hash = hash_of(ask);
	struct entry *e = entry_find(f, ask, hash);

	if (e != NULL && e->file != NULL &&
	    now_ms - e->asked_ms >= FILES_FRESH_MS) {
		entry_free(e);
		e = NULL;
	}
	if (e == NULL) {
		if ((e = entry_new(f, ask, hash, now_ms)) == NULL)
			return FILES_NONE;
	} else {
		e->used_ms = now_ms;
		TAILQ_REMOVE(&f->by_age, e, age);
		TAILQ_INSERT_HEAD(&f->by_age, e, age);
	}
	if (e->file != NULL) {
		e->file->refs++;
		*out = e->file;
		return FILES_KNOWN;
	}
	if (now_ms - e->asked_ms >= LINK_STUCK_MS)
		return FILES_NONE;
	LIST_INSERT_HEAD(&e->waiters, w, link);
	w->waits = true;
	return FILES_WAIT;
}

void
files_forget(struct files_waiter *w)
{
	if (w->waits)
		LIST_REMOVE(w, link);
	w->waits = false;
}

void
file_release(struct file *file)
{
	if (file == NULL || --file->refs > 0)
		return;
	io_close(&file->fd);
	free(file);
}

/* --- entries */

static struct entry *
entry_find(struct files *f, const struct files_ask *ask, uint64_t hash)
{
	const struct file_path *p = ask->path;
	struct entry *e;

	LIST_FOREACH (e, &f->buckets[hash & (BUCKETS - 1)], chain)
		if (e->hash == hash && e->path_len == p->len &&
		    e->job.ask.files_key == ask->site->files_key &&
		    e->job.ask.directory == p->directory &&
		    e->job.ask.wish[0] == ask->wish.order[0] &&
		    e->job.ask.wish[1] == ask->wish.order[1] &&
		    memcmp(e->path, p->text, p->len) == 0)
			return e;
	return NULL;
}

/* NULL: no memory, no opener that answers, or all entries are being asked
 * for. */
static struct entry *
entry_new(struct files *f, const struct files_ask *ask, uint64_t hash,
    int64_t now_ms)
{
	const struct file_path *p = ask->path;
	const char *site = snapshot_text(ask->snap, ask->site->name);
	struct entry *last = TAILQ_LAST(&f->by_age, entries), *e;

	if (opener_link_is_stuck(f->opener, now_ms))
		return NULL;
	if (f->n >= FILES_MAX) {
		if (last->file == NULL)
			return NULL;
		entry_free(last);
	}
	e = calloc(1, sizeof(*e) + p->len + 1U + ask->site->name.len + 1U);
	if (e == NULL)
		return NULL;
	e->path = (char *)(e + 1);
	memcpy(e->path, p->text, p->len + 1U);
	e->site = e->path + p->len + 1;
	memcpy(e->site, site, ask->site->name.len + 1U);
	e->path_len = p->len;
	e->files = f;
	e->hash = hash;
	e->asked_ms = e->used_ms = now_ms;
	e->job = (struct link_job){
		.ask.kind = WIRE_LOOKUP,
		.ask.directory = p->directory,
		.ask.wish = { (uint8_t)ask->wish.order[0],
		    (uint8_t)ask->wish.order[1] },
		.ask.files_key = ask->site->files_key,
		.site = e->site,
		.path = e->path,
		.fd = -1,
		.done = on_answer,
	};
	if (!opener_link_ask(f->opener, &e->job, now_ms)) {
		free(e);
		return NULL;
	}
	LIST_INSERT_HEAD(&f->buckets[hash & (BUCKETS - 1)], e, chain);
	TAILQ_INSERT_HEAD(&f->by_age, e, age);
	f->n++;
	return e;
}

static void
entry_free(struct entry *e)
{
	struct files_waiter *w;

	opener_link_cancel(e->files->opener, &e->job);
	while ((w = LIST_FIRST(&e->waiters)) != NULL)
		files_forget(w);
	LIST_REMOVE(e, chain);
	TAILQ_REMOVE(&e->files->by_age, e, age);
	e->files->n--;
	file_release(e->file);
	free(e);
}

/* Whoever is told may ask again, and so push this entry out: nothing of it
 * is looked at once the first one was told. */
static void
on_answer(struct link_job *job, struct link_answer *answer)
{
	struct entry *e =
	    (struct entry *)((char *)job - offsetof(struct entry, job));
	struct file *file = answer != NULL ? file_new(answer) : NULL;
	LIST_HEAD(, files_waiter) told = LIST_HEAD_INITIALIZER(told);
	struct files_waiter *w;

	while ((w = LIST_FIRST(&e->waiters)) != NULL) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&told, w, link);
	}
	if (file != NULL && answer->a.known) {
		e->file = file;
		file->refs++;
	} else {
		entry_free(e);
	}
	while ((w = LIST_FIRST(&told)) != NULL) {
		files_forget(w);
		if (file != NULL)
			file->refs++;
		w->done(w, file);
	}
	file_release(file);
}

static struct file *
file_new(struct link_answer *answer)
{
	const struct wire_answer *a = &answer->a;
	size_t size = (size_t)a->fields_size + a->content_size;
	struct file *file = malloc(sizeof(*file) + size);
	char *text;

	if (file == NULL)
		return NULL;
	text = (char *)(file + 1);
	*file = (struct file){
		.refs = 1,
		.verdict = (enum lookup_verdict)a->verdict,
		.fd = answer->fd,
		.in_memory = a->in_memory,
		.size = a->size,
		.validators = a->validators,
		.fields = text,
		.type_size = a->type_size,
		.body_size = a->body_size,
		.fields_size = a->fields_size,
	};
	memcpy(text, answer->fields, size);
	if (answer->fd == -1)
		file->content = text + a->fields_size;
	answer->fd = -1;
	return file;
}

/* What nobody asks for is not kept open: a deleted file's space comes free,
 * and a file system can be unmounted. */
static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct files *f = arg;
	int64_t now_ms = clock_mono_ms();
	struct entry *e;

	(void)fd;
	(void)what;
	while ((e = TAILQ_LAST(&f->by_age, entries)) != NULL &&
	    now_ms - e->used_ms >= FILES_IDLE_MS)
		entry_free(e);
}
