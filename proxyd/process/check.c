/* check.c: see check.h. */
#include "proxyd/process/check.h"

#include <stdio.h>
#include <string.h>

#include "proxyd/http/proxy_header.h"
#include "proxyd/process/check_mysql.h"

#define STATUS_LINE_MIN 12 /* "HTTP/1.1 200" */
#define SWITCHES_MAX	3  /* of a server that cannot decide how to log in */

static void begin_http(const struct check *, struct check_say *);
static enum why hear_http(struct check *, struct check_say *);
static enum why hear_mysql(struct check *, struct check_say *);

static const struct {
	void (*begin)(const struct check *, struct check_say *);
	/* NULL: nothing is asked. */
	enum why (*hear)(struct check *, struct check_say *);
} kinds[] = {
	[SNAP_CHECK_NONE] = { NULL, NULL },
	[SNAP_CHECK_TCP] = { NULL, NULL },
	[SNAP_CHECK_HTTP] = { begin_http, hear_http },
	[SNAP_CHECK_MYSQL] = { NULL, hear_mysql },
};

/* Nobody is passed on.  Version 2 can say so (LOCAL); in version 1 we name
 * ourselves, for Apache breaks the connection at "PROXY UNKNOWN". */
static size_t
put_header(const struct snap_role *role, const struct proxy_header *ends,
    char *out, size_t room)
{
	static const struct proxy_header nobody = { .secure = false };

	switch (role->proxy) {
	case SNAP_PROXY_V1:
		return proxy_header_write(out, room, PROXY_V1, ends);
	case SNAP_PROXY_V2:
		return proxy_header_write(out, room, PROXY_V2, &nobody);
	default:
		return 0;
	}
}

enum why
check_begin(struct check *c, const struct proxy_header *ends,
    struct check_say *say)
{
	c->n_heard = 0;
	c->heard_size = 0;
	c->detail[0] = '\0';
	say->size = put_header(c->role, ends, say->bytes, sizeof(say->bytes));
	if (kinds[c->role->check].begin != NULL)
		kinds[c->role->check].begin(c, say);
	return kinds[c->role->check].hear == NULL ? WHY_CHECK_OK : WHY_NONE;
}

enum why
check_goes_on(struct check *c, struct check_say *say)
{
	say->size = 0;
	return kinds[c->role->check].hear(c, say);
}

/* --- HTTP */

static void
begin_http(const struct check *c, struct check_say *say)
{
	char *to = say->bytes + say->size;
	size_t room = sizeof(say->bytes) - say->size;
	int n = snprintf(to, room,
	    "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: muster-health\r\n"
	    "Connection: close\r\n\r\n",
	    snapshot_text(c->snap, c->role->check_text),
	    snapshot_text(c->snap, c->node->name));

	/* The longest path takes a tenth of the room. */
	if (n > 0 && (size_t)n < room)
		say->size += (size_t)n;
}

static enum why
hear_http(struct check *c, struct check_say *say)
{
	int status = check_status(c->heard, c->heard_size);

	(void)say;
	if (status == 0)
		return WHY_NONE;
	if (status == -1)
		return WHY_CHECK_GARBAGE;
	if ((uint32_t)status >= c->role->check_low &&
	    (uint32_t)status <= c->role->check_high)
		return WHY_CHECK_OK;
	snprintf(c->detail, sizeof(c->detail), "%d", status);
	return WHY_CHECK_STATUS;
}

int
check_status(const char *b, size_t n)
{
	int status = 0;

	if (n < STATUS_LINE_MIN)
		return memcmp(b, "HTTP/1.", n < 7 ? n : 7) == 0 ? 0 : -1;
	if (memcmp(b, "HTTP/1.", 7) != 0 || (b[7] != '0' && b[7] != '1') ||
	    b[8] != ' ')
		return -1;
	for (int i = 9; i < STATUS_LINE_MIN; i++) {
		if (b[i] < '0' || b[i] > '9')
			return -1;
		status = status * 10 + (b[i] - '0');
	}
	return status >= 100 && status < 600 ? status : -1;
}

/* --- MySQL */

/* Without a user the greeting is enough; with one, it must let that in, and
 * the end of the connection is one that no server counts as aborted. */
static enum why
hear_mysql(struct check *c, struct check_say *say)
{
	const char *user = snapshot_text(c->snap, c->role->check_text);
	/* Ours and theirs are numbered together. */
	uint8_t seq = (uint8_t)(2 * c->n_heard);
	size_t size = 0;

	switch (mysql_read(c->heard, c->heard_size, seq, &size, c->detail,
	    sizeof(c->detail))) {
	case MYSQL_MORE:
		return WHY_NONE;
	case MYSQL_ERROR:
		return WHY_CHECK_ERROR;
	case MYSQL_OK:
		say->size = mysql_write_quit(say->bytes, sizeof(say->bytes));
		return WHY_CHECK_OK;
	case MYSQL_GREETING:
		if (*user == '\0')
			return WHY_CHECK_OK;
		say->size =
		    mysql_write_login(say->bytes, sizeof(say->bytes), user);
		break;
	case MYSQL_SWITCH:
		if (c->n_heard == SWITCHES_MAX)
			return WHY_CHECK_GARBAGE;
		say->size =
		    mysql_write_empty(say->bytes, sizeof(say->bytes), seq);
		break;
	case MYSQL_GARBAGE:
		return WHY_CHECK_GARBAGE;
	}
	c->n_heard++;
	c->heard_size -= size;
	memmove(c->heard, c->heard + size, c->heard_size);
	return WHY_NONE;
}
