/* check.c: see check.h. */
#include "proxyd/process/check.h"

#include <stdio.h>
#include <string.h>

#include "proxyd/http/proxy_header.h"

#define STATUS_LINE_MIN 12 /* "HTTP/1.1 200" */

_Static_assert(STATUS_LINE_MIN <= CHECK_ANSWER_MAX, "a status fits");

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

size_t
check_hello(const struct snapshot *s, const struct snap_role *role,
    const struct snap_node *node, const struct proxy_header *ends,
    char out[CHECK_HELLO_MAX])
{
	size_t size = put_header(role, ends, out, CHECK_HELLO_MAX);
	int n;

	if (role->check != SNAP_CHECK_HTTP)
		return size;
	n = snprintf(out + size, CHECK_HELLO_MAX - size,
	    "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: muster-health\r\n"
	    "Connection: close\r\n\r\n",
	    snapshot_text(s, role->check_path), snapshot_text(s, node->name));
	/* The longest path is a quarter of the room. */
	return n > 0 && (size_t)n < CHECK_HELLO_MAX - size ? size + (size_t)n :
							     size;
}

bool
check_awaits(const struct snap_role *role)
{
	return role->check == SNAP_CHECK_HTTP;
}

enum why
check_answer(const struct snap_role *role, const char *bytes, size_t n)
{
	int status = check_status(bytes, n);

	if (status == 0)
		return WHY_NONE;
	if (status == -1)
		return WHY_CHECK_GARBAGE;
	return (uint32_t)status >= role->check_low &&
		(uint32_t)status <= role->check_high ?
	    WHY_CHECK_OK :
	    WHY_CHECK_STATUS;
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
