/* roster.c: a roster opened, verified and walked; see roster.h. */
#include "common/registry/roster.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/registry/roster_form.h"

#define BUFFER_MAX (ROSTER_LINE_MAX + 4096)

struct roster {
	int fd;
	struct roster_head head;
	char cluster_name[ROSTER_CLUSTER_LEN + 1];
	size_t size, body_at;
	/* The window on the file: bytes [at, at + have), read up to `used`. */
	size_t at, have, used;
	char buf[BUFFER_MAX];
};

static int verify(struct roster *, const uint8_t authority[KEY_SIZE],
    struct err *);
static int read_head(struct roster *, struct err *);
static int hash_body(struct roster *, uint8_t *hash, struct err *);
static int take_cluster(json_t *, void *roster, struct err *);
static void seek_body(struct roster *);
static int next_line(struct roster *, const char **line, size_t *len,
    struct err *);
static int give_line(const char *line, size_t len, roster_line_fn *, void *arg,
    struct err *);

struct roster *
roster_open(const char *path, const uint8_t authority[KEY_SIZE], struct err *e)
{
	struct roster *r;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1) {
		err_errno(e, ERR_LOCAL, "cannot open %s", path);
		return NULL;
	}
	if ((r = roster_open_fd(fd, authority, e)) == NULL)
		err_wrap(e, "%.100s", path);
	return r;
}

struct roster *
roster_open_fd(int fd, const uint8_t authority[KEY_SIZE], struct err *e)
{
	struct roster *r = malloc(sizeof(*r));
	struct stat sb;

	if (r == NULL) {
		err_set(e, ERR_LOCAL, "out of memory");
		close(fd);
		return NULL;
	}
	r->fd = fd;
	r->cluster_name[0] = '\0';
	if (fstat(fd, &sb) == -1 || !S_ISREG(sb.st_mode)) {
		err_set(e, ERR_LOCAL, "not a plain file");
		goto fail;
	}
	if (sb.st_size > ROSTER_SIZE_MAX) {
		err_set(e, ERR_CORRUPT, "larger than a roster may be");
		goto fail;
	}
	r->size = (size_t)sb.st_size;
	if (verify(r, authority, e) == -1 ||
	    roster_each_line(r, "cluster", NULL, take_cluster, r, e) == -1)
		goto fail;
	return r;
fail:
	roster_close(r);
	return NULL;
}

void
roster_close(struct roster *r)
{
	if (r == NULL)
		return;
	close(r->fd);
	free(r);
}

const char *
roster_cluster_uuid(const struct roster *r)
{
	return r->head.cluster_uuid;
}

const char *
roster_cluster_name(const struct roster *r)
{
	return r->cluster_name;
}

int64_t
roster_revision(const struct roster *r)
{
	return r->head.revision;
}

ssize_t
roster_read(struct roster *r, size_t offset, void *buf, size_t size,
    struct err *e)
{
	ssize_t n;

	do
		n = pread(r->fd, buf, size, (off_t)offset);
	while (n == -1 && errno == EINTR);
	return n == -1 ? err_errno(e, ERR_LOCAL, "cannot read the roster") : n;
}

int
roster_each_line(struct roster *r, const char *kind, const char *needle,
    roster_line_fn *fn, void *arg, struct err *e)
{
	char prefix[32];
	size_t prefix_len, needle_len, len = 0;
	const char *line = NULL;
	bool seen = false;
	int rv;

	prefix_len =
	    (size_t)snprintf(prefix, sizeof(prefix), "{\"t\":\"%s\"", kind);
	needle_len = needle != NULL ? strlen(needle) : 0;
	seek_body(r);
	while ((rv = next_line(r, &line, &len, e)) == 1) {
		/* The kinds stand together: the next one ends the walk. */
		if (len < prefix_len || memcmp(line, prefix, prefix_len) != 0) {
			if (seen)
				return 0;
			continue;
		}
		seen = true;
		if (needle != NULL &&
		    memmem(line, len, needle, needle_len) == NULL)
			continue;
		if ((rv = give_line(line, len, fn, arg, e)) != 0)
			return rv;
	}
	return rv;
}

static int
give_line(const char *line, size_t len, roster_line_fn *fn, void *arg,
    struct err *e)
{
	json_t *o = json_parse_object(line, len, ROSTER_LINE_MAX, e);
	int rv;

	if (o == NULL)
		return err_wrap(e, "roster");
	rv = fn(o, arg, e);
	json_decref(o);
	return rv;
}

static int
take_cluster(json_t *o, void *arg, struct err *e)
{
	struct roster *r = arg;
	const char *name;

	if (json_get_string(o, "name", ROSTER_CLUSTER_LEN, &name, e) == -1)
		return -1;
	snprintf(r->cluster_name, sizeof(r->cluster_name), "%s", name);
	return 1;
}

static int
verify(struct roster *r, const uint8_t authority[KEY_SIZE], struct err *e)
{
	uint8_t hash[crypto_generichash_BYTES], message[ROSTER_MESSAGE_MAX];

	if (read_head(r, e) == -1 || hash_body(r, hash, e) == -1)
		return -1;
	if (crypto_sign_verify_detached(r->head.signature, message,
		roster_message(&r->head, hash, message), authority) != 0)
		return err_set(e, ERR_STRANGER,
		    "the roster is not signed by this cluster's authority, "
		    "or damaged");
	return 0;
}

static int
read_head(struct roster *r, struct err *e)
{
	ssize_t n = roster_read(r, 0, r->buf, ROSTER_HEAD_MAX, e);
	const char *end;

	if (n == -1)
		return -1;
	end = memchr(r->buf, '\n', (size_t)n);
	if (end == NULL)
		return err_set(e, ERR_CORRUPT, "not a roster, or cut short");
	r->body_at = (size_t)(end + 1 - r->buf);
	return roster_head_parse(r->buf, r->body_at, &r->head, e);
}

static int
hash_body(struct roster *r, uint8_t *hash, struct err *e)
{
	crypto_generichash_state state;
	size_t at = r->body_at;
	ssize_t n;

	crypto_generichash_init(&state, NULL, 0, crypto_generichash_BYTES);
	while ((n = roster_read(r, at, r->buf, sizeof(r->buf), e)) > 0) {
		crypto_generichash_update(&state, (const uint8_t *)r->buf,
		    (size_t)n);
		at += (size_t)n;
	}
	crypto_generichash_final(&state, hash, crypto_generichash_BYTES);
	if (n == -1)
		return -1;
	if (at != r->size)
		return err_set(e, ERR_CORRUPT, "it changed while it was read");
	return 0;
}

static void
seek_body(struct roster *r)
{
	r->at = r->body_at;
	r->have = r->used = 0;
}

/* 1, 0 at the end, -1.  The line is without its newline, in r->buf. */
static int
next_line(struct roster *r, const char **line, size_t *len, struct err *e)
{
	for (;;) {
		char *start = r->buf + r->used;
		size_t left = r->have - r->used;
		char *end = memchr(start, '\n', left);
		ssize_t n;

		if (end != NULL) {
			*line = start;
			*len = (size_t)(end - start);
			r->used += *len + 1;
			return 1;
		}
		memmove(r->buf, start, left);
		r->at += r->used;
		r->used = 0;
		r->have = left;
		if (left == sizeof(r->buf))
			return err_set(e, ERR_CORRUPT,
			    "a line of the roster is too long");
		n = roster_read(r, r->at + left, r->buf + left,
		    sizeof(r->buf) - left, e);
		if (n == -1)
			return -1;
		if (n == 0 && left > 0)
			return err_set(e, ERR_CORRUPT,
			    "the roster's last line is cut");
		if (n == 0)
			return 0;
		r->have += (size_t)n;
	}
}
