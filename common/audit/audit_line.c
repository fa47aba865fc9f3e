/* audit_line.c: see audit_line.h. */
#include "common/audit/audit_line.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

const char audit_no_hash[AUDIT_HASH_HEX + 1] =
    "0000000000000000000000000000000000000000000000000000000000000000";

static int check_log(const char *path, int fd, struct err *);

void
audit_hash(const char *line, size_t len, char hex[AUDIT_HASH_HEX + 1])
{
	uint8_t hash[crypto_generichash_BYTES];

	crypto_generichash(hash, sizeof(hash), (const uint8_t *)line, len, NULL,
	    0);
	sodium_bin2hex(hex, AUDIT_HASH_HEX + 1, hash, sizeof(hash));
}

json_t *
audit_parse(const char *line, size_t len, uint64_t *seq, const char **prev)
{
	json_t *o = len > AUDIT_LINE_MAX ?
	    NULL :
	    json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *s = json_object_get(o, "seq");
	const json_t *p = json_object_get(o, "prev");

	if (!json_is_integer(s) || json_integer_value(s) < 1 ||
	    !json_is_string(p) || json_string_length(p) != AUDIT_HASH_HEX) {
		json_decref(o);
		return NULL;
	}
	*seq = (uint64_t)json_integer_value(s);
	*prev = json_string_value(p);
	return o;
}

int
audit_next(struct audit_reader *in, const char **line, size_t *len, bool *whole)
{
	for (;;) {
		char *start = in->buf + in->used;
		size_t left = in->have - in->used;
		char *end = memchr(start, '\n', left);
		ssize_t n = 0;

		if (end == NULL && left < sizeof(in->buf)) {
			memmove(in->buf, start, left);
			in->used = 0;
			in->have = left;
			n = io_read_n(in->fd, in->buf + left,
			    sizeof(in->buf) - left);
			if (n == -1)
				return -1;
			in->have += (size_t)n;
			if (n > 0)
				continue;
			start = in->buf;
			if (left == 0)
				return 0;
		}
		*line = start;
		*whole = end != NULL;
		*len = end != NULL ? (size_t)(end - start) : left;
		in->used += *len + *whole;
		return 1;
	}
}

int
audit_open(const char *path, bool write, struct err *e)
{
	int flags = write ? O_RDWR | O_APPEND | O_CREAT : O_RDONLY;
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd == -1 && errno == ENOENT && !write)
		return -2;
	if (fd == -1 && errno == ELOOP)
		return err_set(e, ERR_LOCAL,
		    "audit log %s is a symbolic link; move it away", path);
	if (fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot open audit log %s",
		    path);
	if (check_log(path, fd, e) == -1) {
		close(fd);
		return -1;
	}
	while (flock(fd, write ? LOCK_EX : LOCK_SH) == -1) {
		if (errno == EINTR)
			continue;
		err_errno(e, ERR_LOCAL, "cannot lock audit log %s", path);
		close(fd);
		return -1;
	}
	return fd;
}

static int
check_log(const char *path, int fd, struct err *e)
{
	struct stat sb;

	if (fstat(fd, &sb) == -1)
		return err_errno(e, ERR_LOCAL, "audit log %s", path);
	if (!S_ISREG(sb.st_mode))
		return err_set(e, ERR_LOCAL, "audit log %s is not a plain file",
		    path);
	if (sb.st_uid != geteuid())
		return err_set(e, ERR_LOCAL,
		    "audit log %s belongs to uid %d, not to uid %d", path,
		    (int)sb.st_uid, (int)geteuid());
	if ((sb.st_mode & 0022) != 0)
		return err_set(e, ERR_LOCAL,
		    "audit log %s is writable by others (mode %04o); chmod 600 "
		    "it",
		    path, (unsigned)sb.st_mode & 07777);
	return 0;
}
