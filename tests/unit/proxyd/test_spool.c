/*
 * test_spool.c: stores in a spool against a model: what comes out is what
 * went in, no block is in two stores, none is lost, and the bound holds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/spool.h"

#define N_STORES 12
#define LIMIT	 40 /* blocks */

/* What a store must hold: bytes made from a place in one long row of them. */
struct model {
	struct store st;
	uint64_t begin, from, to;
};

static uint32_t seed = 1;

static uint32_t
below(uint32_t n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

static void
fill(char *bytes, uint64_t place, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)((place + i) * 131 + (place + i) / 257);
}

static struct spool *
new_spool(int *fd)
{
	struct spool *sp;
	struct err e;

	*fd = io_unnamed("/tmp", &e);
	assert_int_not_equal(*fd, -1);
	sp = spool_new(*fd);
	assert_non_null(sp);
	spool_limit(sp, (uint64_t)LIMIT * SPOOL_BLOCK);
	return sp;
}

static void
put(struct spool *sp, struct model *m, char *bytes)
{
	size_t n = below(4) == 0 ? below(3 * SPOOL_BLOCK) : below(5000), done;

	fill(bytes, m->to, n);
	done = store_put(sp, &m->st, bytes, n);
	if (done < n)
		assert_int_equal(spool_room(sp), 0);
	m->to += done;
}

static void
take(struct spool *sp, struct model *m, char *bytes, char *want)
{
	ssize_t n = store_peek(sp, &m->st, bytes, below(2 * SPOOL_BLOCK));

	assert_true(n >= 0 && (uint64_t)n <= m->to - m->from);
	fill(want, m->from, (size_t)n);
	assert_memory_equal(bytes, want, (size_t)n);
	n = n == 0 ? 0 : below((uint32_t)n + 1);
	store_eat(sp, &m->st, (size_t)n);
	m->from += (uint64_t)n;
}

static void
restart(struct spool *sp, struct model *m, bool keep)
{
	store_free(sp, &m->st);
	m->st.keep = keep;
	m->begin = m->from = m->to = m->to + 7;
}

/* Blocks that a store needs at most for what it holds. */
static uint64_t
most_blocks(const struct model *m)
{
	uint64_t n = m->st.keep ? m->to - m->begin : m->to - m->from;

	return n / SPOOL_BLOCK + 2;
}

static void
stores_against_a_model(void **state)
{
	struct model models[N_STORES] = { 0 };
	char *bytes = malloc(3 * SPOOL_BLOCK), *want = malloc(3 * SPOOL_BLOCK);
	int fd;
	struct spool *sp = new_spool(&fd);
	struct stat sb;

	(void)state;
	for (int i = 0; i < 60000; i++) {
		struct model *m = &models[below(N_STORES)];
		uint64_t most = 0;

		switch (below(16)) {
		case 0:
			restart(sp, m, below(2));
			break;
		case 1:
			if (m->st.keep) {
				store_rewind(&m->st);
				m->from = m->begin;
			}
			break;
		case 2:
			store_unkeep(sp, &m->st);
			break;
		case 3:
			spool_tidy(sp, i);
			break;
		case 4 ... 7:
			put(sp, m, bytes);
			break;
		default:
			take(sp, m, bytes, want);
			break;
		}
		assert_int_equal(m->st.size, m->to - m->from);
		for (int k = 0; k < N_STORES; k++)
			most += most_blocks(&models[k]);
		assert_true(spool_used(sp) <= LIMIT * SPOOL_BLOCK);
		assert_true(spool_used(sp) <= most * SPOOL_BLOCK);
	}
	for (int k = 0; k < N_STORES; k++)
		store_free(sp, &models[k].st);
	assert_int_equal(spool_used(sp), 0);
	assert_int_equal(spool_errors(sp), 0);
	for (int i = 0; i < LIMIT; i++)
		spool_tidy(sp, i);
	assert_int_equal(fstat(fd, &sb), 0);
	assert_int_equal(sb.st_blocks, 0); /* all of it was punched out */
	assert_true(sb.st_size <= LIMIT * SPOOL_BLOCK);
	spool_free(sp);
	free(bytes);
	free(want);
}

/* A pipe is emptied into the store as far as there is room. */
static void
pipes_into_stores(void **state)
{
	char *bytes = malloc(4 * SPOOL_BLOCK), *got = malloc(SPOOL_BLOCK);
	struct pipe_pool pool = { 0 };
	struct pipe *p = pipe_take(&pool);
	struct store st = { 0 };
	uint64_t place = 0;
	int fd;
	struct spool *sp = new_spool(&fd);
	ssize_t n;

	(void)state;
	spool_limit(sp, 3 * SPOOL_BLOCK);
	fill(bytes, 0, 4 * SPOOL_BLOCK);
	assert_int_equal(store_put(sp, &st, bytes, 1000), 1000);
	p->held = (size_t)write(p->in, bytes + 1000, 4 * SPOOL_BLOCK - 1000);
	assert_int_equal(p->held, 4 * SPOOL_BLOCK - 1000);
	assert_int_equal(store_put_pipe(sp, &st, p), 3 * SPOOL_BLOCK - 1000);
	assert_int_equal(p->held, SPOOL_BLOCK);
	assert_int_equal(spool_room(sp), 0);
	while ((n = store_peek(sp, &st, got, SPOOL_BLOCK)) > 0) {
		assert_memory_equal(got, bytes + place, (size_t)n);
		store_eat(sp, &st, (size_t)n);
		place += (uint64_t)n;
		store_put_pipe(sp, &st, p);
	}
	assert_int_equal(place, 4 * SPOOL_BLOCK);
	assert_int_equal(p->held, 0);
	assert_int_equal(spool_used(sp), 0);
	pipe_give(&pool, &p);
	pipe_pool_free(&pool);
	spool_free(sp);
	free(bytes);
	free(got);
}

/* A file that cannot grow takes no more, keeps what it has, and is tried
 * again after a while. */
static void
a_file_that_cannot_grow(void **state)
{
	char *bytes = malloc(2 * SPOOL_BLOCK), *got = malloc(SPOOL_BLOCK);
	struct rlimit old, small;
	struct store st = { 0 };
	int fd;
	struct spool *sp = new_spool(&fd);

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = SPOOL_BLOCK + 100;
	setrlimit(RLIMIT_FSIZE, &small);
	spool_tidy(sp, 1000);
	fill(bytes, 0, 2 * SPOOL_BLOCK);
	assert_int_equal(store_put(sp, &st, bytes, 2 * SPOOL_BLOCK),
	    SPOOL_BLOCK + 100);
	assert_int_equal(spool_errors(sp), 1);
	assert_int_equal(spool_room(sp), 0);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(store_put(sp, &st, bytes, 1), 0); /* not yet */
	assert_int_equal(store_peek(sp, &st, got, SPOOL_BLOCK), SPOOL_BLOCK);
	assert_memory_equal(got, bytes, SPOOL_BLOCK);
	spool_tidy(sp, 1000 + 1000);
	assert_int_equal(store_put(sp, &st, bytes + SPOOL_BLOCK + 100, 1000),
	    1000);
	store_eat(sp, &st, SPOOL_BLOCK);
	assert_int_equal(store_peek(sp, &st, got, 1100), 1100);
	assert_memory_equal(got, bytes + SPOOL_BLOCK, 1100);

	/* And one that is cut says so. */
	assert_int_equal(ftruncate(fd, 0), 0);
	do
		assert_int_equal(store_peek(sp, &st, got, 1100), -1);
	while (errno == EAGAIN);
	assert_int_equal(errno, EIO);
	store_free(sp, &st);
	assert_int_equal(spool_used(sp), 0);
	spool_free(sp);
	free(bytes);
	free(got);
}

/* What was pushed out of memory comes back, after a while. */
static void
pages_that_left_memory(void **state)
{
	char *bytes = malloc(5 * SPOOL_BLOCK), *got = malloc(SPOOL_BLOCK);
	struct store st = { 0 };
	uint64_t place = 0;
	unsigned misses = 0;
	int fd;
	struct spool *sp = new_spool(&fd);

	(void)state;
	fill(bytes, 0, 5 * SPOOL_BLOCK);
	assert_int_equal(store_put(sp, &st, bytes, 5 * SPOOL_BLOCK),
	    5 * SPOOL_BLOCK);
	assert_int_equal(fsync(fd), 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (st.size > 0) {
		ssize_t n = store_peek(sp, &st, got, SPOOL_BLOCK);

		if (n == -1) {
			assert_int_equal(errno, EAGAIN);
			assert_in_range(++misses, 1, 5 * 21);
			continue;
		}
		assert_memory_equal(got, bytes + place, (size_t)n);
		store_eat(sp, &st, (size_t)n);
		place += (uint64_t)n;
	}
	assert_int_equal(place, 5 * SPOOL_BLOCK);
	spool_free(sp);
	free(bytes);
	free(got);
}

/* A smaller bound takes nothing away, and nothing new until there is room. */
static void
a_bound_may_change(void **state)
{
	char *bytes = calloc(1, 4 * SPOOL_BLOCK);
	struct store a = { 0 }, b = { 0 };
	int fd;
	struct spool *sp = new_spool(&fd);

	(void)state;
	assert_int_equal(store_put(sp, &a, bytes, 4 * SPOOL_BLOCK),
	    4 * SPOOL_BLOCK);
	spool_limit(sp, 0);
	assert_int_equal(store_put(sp, &b, bytes, 1), 0);
	store_eat(sp, &a, SPOOL_BLOCK);
	assert_int_equal(spool_used(sp), 3 * SPOOL_BLOCK);
	spool_limit(sp, 4 * SPOOL_BLOCK);
	assert_int_equal(store_put(sp, &b, bytes, 2 * SPOOL_BLOCK),
	    SPOOL_BLOCK);
	store_free(sp, &a);
	store_free(sp, &b);
	assert_int_equal(spool_used(sp), 0);
	spool_free(sp);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_against_a_model),
		cmocka_unit_test(pipes_into_stores),
		cmocka_unit_test(a_file_that_cannot_grow),
		cmocka_unit_test(a_bound_may_change),
		cmocka_unit_test(pages_that_left_memory),
	};

	return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
