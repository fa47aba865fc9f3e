/*
 * test_variants.c: compressed forms of files: made, kept, made anew when the
 * file changed, within their bounds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/base/io.h"
#include "proxyd/static/variants.h"

#define LATER INT64_MAX /* the file has long settled */

static char *text, *noise, *room;

static struct lookup
file_of(const char *bytes, size_t size)
{
	char path[] = "/tmp/muster-test-XXXXXX";
	struct lookup l = { .fd = mkostemp(path, O_CLOEXEC), .size = size };

	assert_int_not_equal(l.fd, -1);
	unlink(path);
	assert_int_equal(io_write_n(l.fd, bytes, size), 0);
	return l;
}

static uint64_t
inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_ino;
}

/* As a worker would find the same file again. */
static struct lookup
again(const struct lookup *l)
{
	return (struct lookup){ .fd = dup(l->fd), .size = l->size };
}

static void
assert_unzips(const struct lookup *l, const char *bytes, size_t size)
{
	char *in = malloc((size_t)l->size);
	z_stream z = { .next_in = (Bytef *)in, .avail_in = (uInt)l->size };

	assert_int_equal(l->coding, CODING_GZIP);
	assert_true(l->in_memory);
	assert_int_equal(io_pread_n(l->fd, in, (size_t)l->size, 0), l->size);
	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	z.next_out = (Bytef *)room;
	z.avail_out = VARIANT_FILE_MAX;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, size);
	assert_memory_equal(room, bytes, size);
	inflateEnd(&z);
	free(in);
}

static void
made_once_while_the_file_stays(void **state)
{
	struct variants *v = variants_new();
	struct lookup file = file_of(text, 100000);
	struct lookup a = again(&file), b = again(&file), c;
	uint64_t first;

	(void)state;
	variants_apply(v, &a, CODING_GZIP, 4, LATER);
	assert_unzips(&a, text, 100000);
	first = inode_of(a.fd);
	variants_apply(v, &b, CODING_GZIP, 4, LATER);
	assert_int_equal(inode_of(b.fd), first);
	/* Another level, another coding, another content. */
	c = again(&file);
	variants_apply(v, &c, CODING_GZIP, 9, LATER);
	assert_unzips(&c, text, 100000);
	assert_int_not_equal(inode_of(c.fd), first);
	close(c.fd);
	c = again(&file);
	variants_apply(v, &c, CODING_BR, 4, LATER);
	assert_int_equal(c.coding, CODING_BR);
	assert_true(c.size < a.size);
	close(c.fd);
	assert_int_equal(io_write_n(file.fd, text, 5), 0);
	file.size += 5;
	c = again(&file);
	variants_apply(v, &c, CODING_GZIP, 4, LATER);
	assert_int_not_equal(inode_of(c.fd), first);
	close(c.fd);
	/* What was handed out outlives all. */
	variants_free(v);
	assert_unzips(&a, text, 100000);
	assert_unzips(&b, text, 100000);
	close(a.fd);
	close(b.fd);
	close(file.fd);
}

static void
a_file_that_changed_just_now_is_not_kept(void **state)
{
	struct variants *v = variants_new();
	struct lookup file = file_of(text, 5000), a = again(&file),
		      b = again(&file);
	struct stat st;

	(void)state;
	assert_int_equal(fstat(file.fd, &st), 0);
	variants_apply(v, &a, CODING_GZIP, 4, st.st_ctim.tv_sec + 1);
	variants_apply(v, &b, CODING_GZIP, 4, LATER);
	assert_unzips(&a, text, 5000);
	assert_unzips(&b, text, 5000);
	assert_int_not_equal(inode_of(a.fd), inode_of(b.fd));
	close(a.fd);
	close(b.fd);
	close(file.fd);
	variants_free(v);
}

static void
what_gets_no_smaller_stays(void **state)
{
	struct variants *v = variants_new();
	struct lookup file = file_of(noise, 5000);
	struct lookup large = file_of(text, VARIANT_FILE_MAX);

	(void)state;
	for (int i = 0; i < 2; i++)
		for (enum coding c = CODING_GZIP; c < CODING_N; c++) {
			uint64_t before = inode_of(file.fd);

			variants_apply(v, &file, c, 4, LATER);
			assert_int_equal(file.coding, CODING_NONE);
			assert_false(file.in_memory);
			assert_int_equal(file.size, 5000);
			assert_int_equal(inode_of(file.fd), before);
		}
	assert_int_equal(io_write_n(large.fd, "x", 1), 0);
	variants_apply(v, &large, CODING_GZIP, 4, LATER);
	assert_int_equal(large.coding, CODING_NONE);
	/* Shorter than it was when it was asked for. */
	assert_int_equal(ftruncate(file.fd, 0), 0);
	variants_apply(v, &file, CODING_GZIP, 4, LATER);
	assert_int_equal(file.coding, CODING_NONE);
	close(file.fd);
	close(large.fd);
	variants_free(v);
}

static void
the_least_recently_used_goes(void **state)
{
	struct variants *v = variants_new();
	struct lookup hot = file_of(text, 4000), first = again(&hot);

	(void)state;
	variants_apply(v, &first, CODING_GZIP, 1, LATER);
	for (int i = 0; i < VARIANTS_MAX + 50; i++) {
		struct lookup l = file_of(text + i, 2000), h = again(&hot);

		variants_apply(v, &l, CODING_GZIP, 1, LATER);
		assert_int_equal(l.coding, CODING_GZIP);
		variants_apply(v, &h, CODING_GZIP, 1, LATER);
		assert_int_equal(inode_of(h.fd), inode_of(first.fd));
		close(l.fd);
		close(h.fd);
	}
	close(hot.fd);
	close(first.fd);
	variants_free(v);
}

static int
make_bytes(void **state)
{
	uint32_t n = 1;

	(void)state;
	text = malloc(VARIANT_FILE_MAX);
	noise = malloc(VARIANT_FILE_MAX);
	room = malloc(VARIANT_FILE_MAX);
	for (size_t i = 0; i < VARIANT_FILE_MAX; i++) {
		n = n * 1664525 + 1013904223;
		noise[i] = (char)(n >> 24);
		text[i] = "the text of a page, and more"[i * i / 7 % 28];
	}
	return 0;
}

static int
free_bytes(void **state)
{
	(void)state;
	free(text);
	free(noise);
	free(room);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_once_while_the_file_stays),
		cmocka_unit_test(a_file_that_changed_just_now_is_not_kept),
		cmocka_unit_test(what_gets_no_smaller_stays),
		cmocka_unit_test(the_least_recently_used_goes),
	};

	return cmocka_run_group_tests_name("variants", tests, make_bytes,
	    free_bytes);
}
