/* variants.c: see variants.h. */
#include "proxyd/static/variants.h"

#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/compress.h"

#define SETTLED_S 2 /* also covers file systems that count seconds */

/* What tells one from all others. */
struct key {
	uint64_t dev, ino;
	int64_t size, change_s, change_ns;
	uint32_t coding, level;
};

struct variant {
	TAILQ_ENTRY(variant) age;
	struct key key;
	int fd; /* -1: it would be no smaller */
	uint64_t size;
};

struct variants {
	pthread_mutex_t lock;
	TAILQ_HEAD(variant_list, variant) by_age; /* the oldest use last */
	unsigned n;
	uint64_t size;
};

static bool find(struct variants *, const struct key *, struct lookup *);
static void keep(struct variants *, const struct key *, int fd, uint64_t size);
static bool make(const struct lookup *, const struct key *, int *fd,
    uint64_t *size);
static size_t pack(const struct key *, const char *in, size_t size, char *out);
static int to_memory(const char *data, size_t size);

struct variants *
variants_new(void)
{
	struct variants *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	pthread_mutex_init(&v->lock, NULL);
	TAILQ_INIT(&v->by_age);
	return v;
}

static void
drop(struct variants *v, struct variant *it)
{
	TAILQ_REMOVE(&v->by_age, it, age);
	v->n--;
	v->size -= it->size;
	io_close(&it->fd);
	free(it);
}

void
variants_free(struct variants *v)
{
	struct variant *it;

	if (v == NULL)
		return;
	while ((it = TAILQ_FIRST(&v->by_age)) != NULL)
		drop(v, it);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static void
replace(struct lookup *l, int fd, uint64_t size, uint32_t coding)
{
	close(l->fd);
	l->fd = fd;
	l->size = size;
	l->coding = (enum coding)coding;
	l->in_memory = true;
}

void
variants_apply(struct variants *v, struct lookup *l, enum coding coding,
    unsigned level, int64_t now_s)
{
	struct key key;
	struct stat st;
	uint64_t size;
	int fd;

	if (fstat(l->fd, &st) == -1 || st.st_size > (off_t)VARIANT_FILE_MAX)
		return;
	key = (struct key){
		.dev = (uint64_t)st.st_dev,
		.ino = (uint64_t)st.st_ino,
		.size = st.st_size,
		.change_s = st.st_ctim.tv_sec,
		.change_ns = st.st_ctim.tv_nsec,
		.coding = (uint32_t)coding,
		.level = level,
	};
	if (find(v, &key, l))
		return;
	if (!make(l, &key, &fd, &size))
		return;
	/* What changed just now may change again within the same tick of the
	 * file system's clock. */
	if (now_s - key.change_s >= SETTLED_S)
		keep(v, &key, fd, size);
	if (fd != -1)
		replace(l, fd, size, key.coding);
}

static bool
find(struct variants *v, const struct key *key, struct lookup *l)
{
	struct variant *it;
	int fd = -1;

	pthread_mutex_lock(&v->lock);
	TAILQ_FOREACH (it, &v->by_age, age)
		if (memcmp(&it->key, key, sizeof(*key)) == 0)
			break;
	if (it != NULL) {
		TAILQ_REMOVE(&v->by_age, it, age);
		TAILQ_INSERT_HEAD(&v->by_age, it, age);
		if (it->fd != -1)
			fd = fcntl(it->fd, F_DUPFD_CLOEXEC, 0);
		if (fd != -1)
			replace(l, fd, it->size, key->coding);
	}
	pthread_mutex_unlock(&v->lock);
	return it != NULL;
}

/* Two threads may have made the same: both are kept, one gets old. */
static void
keep(struct variants *v, const struct key *key, int fd, uint64_t size)
{
	struct variant *it = calloc(1, sizeof(*it));

	if (it == NULL)
		return;
	it->key = *key;
	it->fd = -1;
	if (fd != -1) {
		it->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		it->size = size;
		if (it->fd == -1) {
			free(it);
			return;
		}
	}
	pthread_mutex_lock(&v->lock);
	TAILQ_INSERT_HEAD(&v->by_age, it, age);
	v->n++;
	v->size += it->size;
	while (v->n > VARIANTS_MAX || v->size > VARIANTS_SIZE)
		drop(v, TAILQ_LAST(&v->by_age, variant_list));
	pthread_mutex_unlock(&v->lock);
}

/* *fd is -1 if it would be no smaller.  False: it cannot be had. */
static bool
make(const struct lookup *l, const struct key *key, int *fd, uint64_t *size)
{
	size_t whole = (size_t)key->size, n = 0;
	char *in = malloc(2 * whole);

	if (in == NULL)
		return false;
	if (io_pread_n(l->fd, in, whole, 0) == (ssize_t)whole)
		n = pack(key, in, whole, in + whole);
	*size = n;
	*fd = n > 0 && n < whole ? to_memory(in + whole, n) : -1;
	free(in);
	return *fd != -1 || n == whole;
}

/* Bytes; `size`: no fewer; 0: it failed. */
static size_t
pack(const struct key *key, const char *in, size_t size, char *out)
{
	struct compress_memory memory = { 0 };
	struct compress *c =
	    compress_new(&memory, (enum coding)key->coding, key->level, size);
	size_t left = size;
	ssize_t n = -1;

	if (c != NULL)
		n = c->filter.turn(&c->filter, &in, &left, out, size,
		    FILTER_END);
	compress_free(&c);
	compress_memory_fini(&memory);
	if (n == -1)
		return 0;
	/* Without room for its end it is none. */
	return left > 0 ? size : (size_t)n;
}

static int
to_memory(const char *data, size_t size)
{
	int fd = memfd_create("muster-variant", MFD_CLOEXEC);

	if (fd == -1)
		return -1;
	if (io_write_n(fd, data, size) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}
