/* opener.c: see opener.h. */
#include "proxyd/static/opener.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/registry/sites.h"
#include "proxyd/http/compressible.h"
#include "proxyd/http/writer.h"
#include "proxyd/process/confine.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/snapshot.h"
#include "proxyd/static/http_date.h"
#include "proxyd/static/variants.h"
#include "proxyd/static/wire.h"

#define THREADS	   4
#define WARM_PIECE (128U << 10) /* what kernels read ahead by default */
#define MIME_MAX   (4U << 20)

struct opener {
	struct mime *mime;
	uid_t master; /* whose snapshots we believe */
	pthread_mutex_t lock;
	struct snapshot *snap; /* under the lock, with */
	uint64_t snap_ticket;
	bool possible;
	struct variants *variants;
};

/* One thread's, and the request before it. */
struct hand {
	struct opener *o;
	struct htaccess_cache cache;
	struct wire_ask ask;
	char text[WIRE_TEXT_MAX + 2]; /* two NULs behind what came */
	int fd;			      /* that came with it */
	/* What the site says, copied: a snapshot may be replaced meanwhile. */
	char home[SITE_PATH_MAX], extensions[SITE_EXTENSIONS_MAX],
	    cache_control[SITE_FIELD_MAX], charset[SITE_CHARSET_MAX];
	bool owner_check;
	uint32_t compress, levels[CODING_N];
	uint64_t compress_min;
	char compress_types[SITE_TYPES_MAX];
	char fields[WIRE_FIELDS_MAX];
	char content[WARM_PIECE];
};

typedef void ask_fn(struct hand *);

static ask_fn take_snapshot, look_up, warm;

static ask_fn *const asks[WIRE_KINDS] = {
	[WIRE_SNAPSHOT] = take_snapshot,
	[WIRE_LOOKUP] = look_up,
	[WIRE_WARM] = warm,
};

static int set_up(struct opener *, struct err *);
static int start(struct opener *, struct err *);
static bool receive(struct hand *);
static void *work(void *);
static bool find_site(struct hand *);
static void compress(struct hand *, struct lookup *);
static void write_fields(struct hand *, const struct lookup *,
    struct wire_answer *);
static void read_content(struct hand *, struct lookup *, struct wire_answer *);
static void answer(struct hand *, struct wire_answer *, int fd);

int
opener_run(void)
{
	static struct opener o = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread;
	struct hand *own;
	struct err e;

	if (set_up(&o, &e) == -1 || start(&o, &e) == -1) {
		log_error("opener: %s", e.text);
		return err_exit_status(e.code);
	}
	for (int i = 1; i < THREADS; i++) {
		struct hand *h = calloc(1, sizeof(*h));

		if (h == NULL)
			break;
		h->o = &o;
		if (pthread_create(&thread, NULL, work, h) != 0) {
			free(h);
			break; /* fewer will do */
		}
	}
	if ((own = calloc(1, sizeof(*own))) == NULL)
		return EXIT_FAILURE;
	own->o = &o;
	work(own);
	/* The others may wait for a disk; nobody waits for them. */
	_exit(0);
}

/* All that needs files of the system, before they are out of reach. */
static int
set_up(struct opener *o, struct err *e)
{
	struct err why;
	char *text = NULL;
	size_t size = 0;

	tzset();
	if (io_read_file(MIME_TYPES_FILE, MIME_MAX, &text, &size, &why) == -1)
		log_debug("%s; going on with our own table", why.text);
	o->mime = mime_new(text, size);
	free(text);
	o->variants = variants_new();
	if (o->mime == NULL || o->variants == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for static files");
	o->master = geteuid();
	return 0;
}

static int
start(struct opener *o, struct err *e)
{
	struct hand *h = calloc(1, sizeof(*h));
	int rv;

	if (h == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	h->o = o;
	/* The first snapshot may come before. */
	for (;;) {
		if (!receive(h))
			_exit(0);
		if (h->ask.kind == WIRE_START)
			break;
		if (asks[h->ask.kind] != NULL)
			asks[h->ask.kind](h);
		io_close(&h->fd);
	}
	rv = confine(h->text, CONFINE_OPENER, e);
	free(h);
	o->possible = lookup_possible();
	if (rv == 0 && !o->possible)
		log_warn("this kernel has no openat2: all static files come "
			 "from the nodes");
	return rv;
}

/* False: the worker is gone. */
static bool
receive(struct hand *h)
{
	struct iovec iov[2] = { { &h->ask, sizeof(h->ask) },
		{ h->text, sizeof(h->text) - 2 } };
	ssize_t n = wire_recv(IPC_CHILD_FD, iov, 2, &h->fd);

	if (n < (ssize_t)sizeof(h->ask) || h->ask.kind >= WIRE_KINDS)
		return false;
	memset(h->text + ((size_t)n - sizeof(h->ask)), 0, 2);
	return true;
}

static void *
work(void *arg)
{
	struct hand *h = arg;

	while (receive(h)) {
		if (asks[h->ask.kind] != NULL)
			asks[h->ask.kind](h);
		io_close(&h->fd);
	}
	_exit(0);
}

/* Only what the master's account made and nobody can change is a snapshot:
 * the worker in between has another account. */
static void
take_snapshot(struct hand *h)
{
	struct opener *o = h->o;
	struct snapshot *fresh, *old;
	struct stat st;
	struct err e;
	int seals = fcntl(h->fd, F_GET_SEALS);

	if (h->fd == -1 || fstat(h->fd, &st) == -1 || st.st_uid != o->master ||
	    seals == -1 || (seals & F_SEAL_WRITE) == 0) {
		log_error("opener: a snapshot that is not the master's");
		return;
	}
	if ((fresh = snapshot_map(h->fd, &e)) == NULL) {
		log_error("opener: %s", e.text);
		return;
	}
	pthread_mutex_lock(&o->lock);
	old = o->snap;
	/* Two threads may have taken two in the wrong order. */
	if (h->ask.ticket >= o->snap_ticket) {
		o->snap_ticket = h->ask.ticket;
		o->snap = fresh;
		fresh = old;
	}
	pthread_mutex_unlock(&o->lock);
	snapshot_release(fresh);
}

/* Not believed: the worker may not be itself any more. */
static enum coding
wish_of(const struct hand *h, int i)
{
	return h->ask.wish[i] < CODING_N ? (enum coding)h->ask.wish[i] :
					   CODING_NONE;
}

static void
look_up(struct hand *h)
{
	struct wire_answer a = { .ticket = h->ask.ticket };
	const struct lookup_site site = {
		.home = h->home,
		.extensions = h->extensions,
		.owner_check = h->owner_check,
	};
	struct lookup found = { .verdict = LOOKUP_DISK, .fd = -1 };

	a.known = find_site(h);
	if (a.known && h->o->possible) {
		const struct lookup_ask ask = {
			.path = h->text + strlen(h->text) + 1,
			.directory = h->ask.directory,
			.wish.order = { wish_of(h, 0), wish_of(h, 1) },
		};

		lookup_path(&found, &site, &ask,
		    &(struct lookup_tools){ h->o->mime, &h->cache });
	}
	a.verdict = found.verdict;
	if (found.verdict == LOOKUP_FILE) {
		compress(h, &found);
		write_fields(h, &found, &a);
		read_content(h, &found, &a);
	}
	answer(h, &a, found.fd);
	io_close(&found.fd);
}

static void
copy_text(char *to, size_t size, const struct snapshot *s, struct snap_text t)
{
	snprintf(to, size, "%s", snapshot_text(s, t));
}

static void
copy_compression(struct hand *h, const struct snapshot *snap,
    const struct snap_site *s)
{
	h->compress = s->compress;
	h->compress_min = s->compress_min;
	h->levels[CODING_GZIP] = snap->head->settings.gzip_level;
	h->levels[CODING_BR] = snap->head->settings.brotli_level;
	copy_text(h->compress_types, sizeof(h->compress_types), snap,
	    s->compress_types);
}

/* Whether the snapshot says of the site what the worker's says. */
static bool
find_site(struct hand *h)
{
	struct opener *o = h->o;
	const struct snap_site *s = NULL;
	bool found;

	pthread_mutex_lock(&o->lock);
	if (o->snap != NULL)
		s = snapshot_find(o->snap, h->text, strlen(h->text));
	found = s != NULL && (s->flags & SNAP_SITE_STATIC) != 0 &&
	    s->files_key == h->ask.files_key;
	if (found) {
		copy_text(h->home, sizeof(h->home), o->snap, s->home);
		copy_text(h->extensions, sizeof(h->extensions), o->snap,
		    s->static_ext);
		copy_text(h->cache_control, sizeof(h->cache_control), o->snap,
		    s->cache_control);
		copy_text(h->charset, sizeof(h->charset), o->snap, s->charset);
		h->owner_check = (s->flags & SNAP_SITE_OWNER_CHECK) != 0;
		copy_compression(h, o->snap, s);
	}
	pthread_mutex_unlock(&o->lock);
	return found;
}

static void
put_field(struct writer *w, const char *name, const char *value)
{
	put_text(w, name);
	PUT(w, ": ");
	put_text(w, value);
	PUT(w, "\r\n");
}

/* What has no compressed form on disk gets one here, if the site wants it. */
static void
compress(struct hand *h, struct lookup *l)
{
	const struct coding_wish wish = { { wish_of(h, 0), wish_of(h, 1) } };
	enum coding coding = coding_choose(wish, h->compress);

	if (h->compress == 0 || l->coding != CODING_NONE ||
	    l->size < h->compress_min || l->size > VARIANT_FILE_MAX ||
	    !compressible_type(h->compress_types, l->type, strlen(l->type)) ||
	    strstr(h->cache_control, "no-transform") != NULL)
		return;
	l->varies = true;
	if (coding != CODING_NONE)
		variants_apply(h->o->variants, l, coding, h->levels[coding],
		    clock_wall_ms() / 1000);
}

static void
write_fields(struct hand *h, const struct lookup *l, struct wire_answer *a)
{
	char date[HTTP_DATE_MAX];
	struct writer w;

	a->size = l->size;
	a->in_memory = l->in_memory;
	a->validators.modified_s = l->modified_s;
	etag_format(a->validators.etag, l->size, l->modified_s, l->modified_ns,
	    l->coding);
	http_date_format(l->modified_s, date);
	writer_init(&w, h->fields, sizeof(h->fields));
	PUT(&w, "Content-Type: ");
	put_text(&w, l->type);
	if (*h->charset != '\0' && mime_is_text(l->type)) {
		PUT(&w, "; charset=");
		put_text(&w, h->charset);
	}
	PUT(&w, "\r\n");
	a->type_size = (uint32_t)writer_size(&w);
	if (l->coding != CODING_NONE)
		put_field(&w, "Content-Encoding", coding_names[l->coding]);
	a->body_size = (uint32_t)writer_size(&w);
	put_field(&w, "Last-Modified", date);
	put_field(&w, "ETag", a->validators.etag);
	put_field(&w, "Accept-Ranges", "bytes");
	if (*h->cache_control != '\0')
		put_field(&w, "Cache-Control", h->cache_control);
	if (l->varies)
		put_field(&w, "Vary", "Accept-Encoding");
	a->fields_size = (uint32_t)writer_size(&w);
}

/* A small file goes along whole: its worker then needs neither disk nor
 * descriptor. */
static void
read_content(struct hand *h, struct lookup *l, struct wire_answer *a)
{
	ssize_t n;

	if (l->size > WIRE_CONTENT_MAX)
		return;
	n = io_pread_n(l->fd, h->content, (size_t)l->size, 0);
	io_close(&l->fd);
	if (n == (ssize_t)l->size)
		a->content_size = (uint32_t)n;
	else
		a->verdict = LOOKUP_DISK; /* it is being changed */
}

static void
answer(struct hand *h, struct wire_answer *a, int fd)
{
	struct iovec iov[3] = { { a, sizeof(*a) },
		{ h->fields, a->fields_size },
		{ h->content, a->content_size } };

	if (wire_send(IPC_CHILD_FD, iov, 3, fd) == -1)
		log_debug("opener: the worker takes no answer");
}

/* Reading puts the bytes into the kernel's memory, whence the worker sends
 * them. */
static void
warm(struct hand *h)
{
	struct wire_answer a = { .ticket = h->ask.ticket, .known = true };
	uint64_t at = h->ask.offset, end = at + h->ask.size;

	while (h->fd != -1 && at < end) {
		size_t n =
		    end - at < WARM_PIECE ? (size_t)(end - at) : WARM_PIECE;
		ssize_t got = pread(h->fd, h->content, n, (off_t)at);

		if (got <= 0)
			break;
		at += (uint64_t)got;
	}
	answer(h, &a, -1);
}
