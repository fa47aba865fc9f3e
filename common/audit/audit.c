/* audit.c: appending; see audit.h. */
#include "common/audit/audit.h"

#include <sys/stat.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/audit/audit_line.h"
#include "common/base/clock.h"
#include "common/base/io.h"

/* The end of the log that is looked at: a whole line and a torn one. */
#define TAIL_SIZE (2 * AUDIT_LINE_MAX)

#define HEAD_ROOM 256 /* "seq", "time", "prev" and the braces */
#define CUT_LEAST 64  /* a cut field keeps so much */

/* Where the chain stands. */
struct tail {
	uint64_t seq;
	char hash[AUDIT_HASH_HEX + 1];
	off_t file_size;
	bool open; /* the file does not end with a newline */
	/* What is behind the last good line, with the newline that ends it or
	 * will end it. */
	size_t torn_size;
	char torn_hash[AUDIT_HASH_HEX + 1];
};

static int append(const char *path, json_t *fields, bool wait, struct err *);
static int find_tail(const char *path, int fd, struct tail *, struct err *);
static int scan_tail(const char *path, char *buf, size_t n, struct tail *,
    struct err *);
static int write_lines(const char *path, int fd, struct tail *, json_t *fields,
    struct err *);
static char *make_line(struct tail *, json_t *fields, size_t *len);
static int fit(json_t *fields);
static int cut_largest(json_t *fields, json_t *cut, size_t excess);
static size_t dumped_size(const json_t *);

int
audit_append(const char *path, json_t *fields, struct err *e)
{
	return append(path, fields, true, e);
}

int
audit_append_soon(const char *path, json_t *fields, struct err *e)
{
	return append(path, fields, false, e);
}

int
audit_sync(const char *path, struct err *e)
{
	int fd = audit_open(path, true, e), rv = 0;

	if (fd == -1)
		return -1;
	if (fdatasync(fd) == -1)
		rv = err_errno(e, ERR_LOCAL, "cannot write audit log %s", path);
	close(fd);
	return rv;
}

static int
append(const char *path, json_t *fields, bool wait, struct err *e)
{
	struct tail t = { .seq = 0 };
	int fd = -1, rv = -1;

	if (fields == NULL) {
		/* From json_pack(), which likes neither. */
		err_set(e, ERR_LOCAL,
		    "no event for the audit log: text that is not UTF-8, or "
		    "out of memory");
		goto out;
	}
	if ((fd = audit_open(path, true, e)) == -1)
		goto out;
	if (find_tail(path, fd, &t, e) == -1 ||
	    write_lines(path, fd, &t, fields, e) == -1)
		goto out;
	if (wait && fdatasync(fd) == -1)
		err_errno(e, ERR_LOCAL, "cannot write audit log %s", path);
	else
		rv = 0;
out:
	json_decref(fields);
	io_close(&fd); /* and with it the lock */
	return rv;
}

static int
find_tail(const char *path, int fd, struct tail *t, struct err *e)
{
	char *buf;
	struct stat sb;
	size_t size;
	int rv = -1;

	if (fstat(fd, &sb) == -1)
		return err_errno(e, ERR_LOCAL, "audit log %s", path);
	t->file_size = sb.st_size;
	size = sb.st_size < TAIL_SIZE ? (size_t)sb.st_size : TAIL_SIZE;
	/* One byte more for scan_tail(). */
	if ((buf = malloc(TAIL_SIZE + 1)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (lseek(fd, sb.st_size - (off_t)size, SEEK_SET) == -1 ||
	    io_read_n(fd, buf, size) != (ssize_t)size)
		err_errno(e, ERR_LOCAL, "cannot read audit log %s", path);
	else
		rv = scan_tail(path, buf, size, t, e);
	free(buf);
	return rv;
}

/* Backwards to the last line that is one; what follows it is torn.  buf has
 * room for one byte more. */
static int
scan_tail(const char *path, char *buf, size_t n, struct tail *t, struct err *e)
{
	size_t good = 0, end;

	memcpy(t->hash, audit_no_hash, sizeof(t->hash));
	/* A line that lacks nothing but its newline is a good one. */
	if ((t->open = n > 0 && buf[n - 1] != '\n'))
		buf[n++] = '\n';
	end = n;
	while (end > 0) {
		const char *newline = memrchr(buf, '\n', end), *start;
		const char *prev;
		json_t *o;

		if (newline == NULL)
			break;
		end = (size_t)(newline - buf);
		start = memrchr(buf, '\n', end);
		start = start != NULL ? start + 1 : buf;
		o = audit_parse(start, (size_t)(newline - start), &t->seq,
		    &prev);
		if (o != NULL) {
			json_decref(o);
			audit_hash(start, (size_t)(newline - start), t->hash);
			good = end + 1;
			break;
		}
	}
	if (good == 0 && t->file_size > TAIL_SIZE)
		return err_set(e, ERR_CORRUPT,
		    "audit log %s is damaged at its end; look at it with "
		    "clusterctl audit --verify and move it away",
		    path);
	t->torn_size = n - good;
	audit_hash(buf + good, t->torn_size, t->torn_hash);
	return 0;
}

/* All of it in one write, so that a kill leaves all or nothing of it; what a
 * full disk took of it is given back. */
static int
write_lines(const char *path, int fd, struct tail *t, json_t *fields,
    struct err *e)
{
	char *healing = NULL, *line = NULL, *all = NULL;
	size_t healing_len = 0, line_len = 0, n = 0;
	json_t *torn;
	int rv = -1;

	if (t->torn_size > 0) {
		torn =
		    json_pack("{s:s, s:I, s:s}", "event", "torn", "torn_size",
			(json_int_t)t->torn_size, "torn_hash", t->torn_hash);
		healing = make_line(t, torn, &healing_len);
		json_decref(torn);
		if (healing == NULL)
			goto nomem;
	}
	if ((line = make_line(t, fields, &line_len)) == NULL ||
	    (all = malloc(1 + healing_len + line_len)) == NULL)
		goto nomem;
	if (t->open)
		all[n++] = '\n';
	if (healing != NULL)
		memcpy(all + n, healing, healing_len);
	memcpy(all + n + healing_len, line, line_len);
	n += healing_len + line_len;
	if (io_write_n(fd, all, n) == 0) {
		rv = 0;
		goto out;
	}
	err_errno(e, ERR_LOCAL, "cannot write audit log %s", path);
	if (ftruncate(fd, t->file_size) == -1)
		err_wrap(e, "and its end is torn now");
	goto out;
nomem:
	err_set(e, ERR_LOCAL, "out of memory for the audit log");
out:
	free(healing);
	free(line);
	free(all);
	return rv;
}

/* The line with its newline, malloc'ed; the tail moves on to it. */
static char *
make_line(struct tail *t, json_t *fields, size_t *len)
{
	char now[32], *line = NULL;
	json_t *o;

	if (fields == NULL || fit(fields) == -1)
		return NULL;
	clock_format_utc(clock_wall_ms(), now, sizeof(now));
	o = json_pack("{s:I, s:s, s:s}", "seq", (json_int_t)(t->seq + 1),
	    "time", now, "prev", t->hash);
	if (o == NULL || json_object_update_missing(o, fields) == -1)
		goto out;
	/* One byte more for the newline, whose place is the NUL's. */
	if ((line = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6))) ==
	    NULL)
		goto out;
	*len = strlen(line);
	audit_hash(line, *len, t->hash);
	t->seq++;
	line[(*len)++] = '\n';
out:
	json_decref(o);
	return line;
}

static int
fit(json_t *fields)
{
	const size_t room = AUDIT_LINE_MAX - HEAD_ROOM;
	json_t *cut = NULL; /* owned by fields once it is there */
	size_t size;

	while ((size = dumped_size(fields)) > room) {
		if (cut == NULL) {
			cut = json_array();
			if (json_object_set_new(fields, "cut", cut) == -1)
				return -1;
			continue;
		}
		if (cut_largest(fields, cut, size - room) == -1)
			return -1;
	}
	return 0;
}

/* The largest member becomes the beginning of its text. */
static int
cut_largest(json_t *fields, json_t *cut, size_t excess)
{
	const char *key, *name = NULL;
	json_t *value, *largest = NULL;
	size_t most = 0, len;
	char *text;
	int rv;

	json_object_foreach (fields, key, value) {
		size_t size = dumped_size(value);

		if (size > most && value != cut) {
			most = size;
			name = key;
			largest = value;
		}
	}
	if (name == NULL)
		return -1;
	text = json_is_string(largest) ? strdup(json_string_value(largest)) :
					 json_dumps(largest, JSON_COMPACT);
	if (text == NULL)
		return -1;
	len = strlen(text);
	/* In the dump a byte may take six; never less than one. */
	len = len > excess + CUT_LEAST ? len - excess - CUT_LEAST : len / 2;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	rv = json_array_append_new(cut, json_string(name));
	if (rv == 0)
		rv = json_object_set_new(fields, name, json_stringn(text, len));
	free(text);
	return rv;
}

static size_t
dumped_size(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}
