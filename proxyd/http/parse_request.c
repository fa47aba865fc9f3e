/*
 * parse_request.c: see parse_request.h.
 *
 * Line by line: memchr finds the LF, one function a kind of line does the
 * rest.  The last line leads to check(), where the fields are weighed
 * together: host, framing, connection, expectations, upgrades.
 */
#include "proxyd/http/parse_request.h"

#include <string.h>

#include "common/base/io.h"

#define BLANK_LINES_MAX 4 /* RFC 9112, section 2.2: be lenient, a little */
#define VERSION_LEN	8
#define WEBSOCKET_KEY	24 /* 16 bytes in base64 */

enum state { R_LINE, R_FIELDS, R_DONE };

static enum why request_line(struct request *, const char *buf, uint32_t end,
    const struct head_limits *);
static enum why field_line(struct request *, const char *buf, uint32_t end,
    const struct head_limits *);
static enum why unfinished(const struct request *, const char *buf,
    uint32_t len, const struct head_limits *);
static enum why check(struct request *, const char *buf);

void
request_init(struct request *r)
{
	/* All but the lists, which are long. */
	memset(r, 0, offsetof(struct request, fields));
	fields_clear(&r->fields);
}

enum parse_result
parse_request(struct request *r, const char *buf, size_t len,
    const struct head_limits *limits, enum why *why)
{
	while (r->state != R_DONE) {
		const char *lf = memchr(buf + r->scan, '\n', len - r->scan);
		uint32_t end;

		if (lf == NULL) {
			*why = unfinished(r, buf, (uint32_t)len, limits);
			r->scan = (uint32_t)len;
			return *why == WHY_NONE ? PARSE_MORE : PARSE_BAD;
		}
		end = (uint32_t)(lf - buf);
		*why = r->state == R_LINE ? WHY_BAD_LINE : WHY_BAD_FIELD;
		if (end == r->line || buf[end - 1] != '\r')
			return PARSE_BAD;
		*why = r->state == R_LINE ?
		    request_line(r, buf, end - 1, limits) :
		    field_line(r, buf, end - 1, limits);
		if (*why != WHY_NONE)
			return PARSE_BAD;
		r->line = r->scan = end + 1;
	}
	return PARSE_DONE;
}

bool
method_idempotent(enum method m)
{
	return m == METHOD_GET || m == METHOD_HEAD || m == METHOD_OPTIONS ||
	    m == METHOD_PUT || m == METHOD_DELETE;
}

/* --- the request line */

static enum method
method_of(const char *name, uint32_t len)
{
	static const struct {
		const char *name;
		uint8_t len, method;
	} methods[] = {
		{ "GET", 3, METHOD_GET },
		{ "POST", 4, METHOD_POST },
		{ "HEAD", 4, METHOD_HEAD },
		{ "PUT", 3, METHOD_PUT },
		{ "DELETE", 6, METHOD_DELETE },
		{ "OPTIONS", 7, METHOD_OPTIONS },
		{ "CONNECT", 7, METHOD_CONNECT },
		{ "TRACE", 5, METHOD_TRACE },
	};

	for (size_t i = 0; i < nitems(methods); i++)
		if (methods[i].len == len &&
		    memcmp(methods[i].name, name, len) == 0)
			return methods[i].method;
	return METHOD_OTHER;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static enum why
version_of(struct request *r, const char *p, uint32_t len)
{
	if (len != VERSION_LEN || memcmp(p, "HTTP/", 5) != 0 ||
	    !is_digit(p[5]) || p[6] != '.' || !is_digit(p[7]))
		return WHY_BAD_VERSION;
	if (p[5] != '1')
		return WHY_HTTP_VERSION;
	r->minor = p[7] != '0';
	return WHY_NONE;
}

static enum why
method_allowed(struct request *r, const char *name, uint32_t len)
{
	if (!field_is_token(name, len))
		return WHY_BAD_LINE;
	if (len > METHOD_LEN_MAX)
		return WHY_METHOD_UNKNOWN;
	r->method = (uint8_t)method_of(name, len);
	if (r->method == METHOD_CONNECT || r->method == METHOD_TRACE)
		return WHY_METHOD_REFUSED;
	return WHY_NONE;
}

/* method SP target SP version, single spaces. */
static enum why
request_line(struct request *r, const char *buf, uint32_t end,
    const struct head_limits *limits)
{
	const char *line = buf + r->line, *sp, *sp2;
	uint32_t len = end - r->line, target;
	enum why why;

	if (len == 0)
		return ++r->blank > BLANK_LINES_MAX ? WHY_BAD_LINE : WHY_NONE;
	if ((sp = memchr(line, ' ', len)) == NULL ||
	    (sp2 = memrchr(line, ' ', len)) == sp)
		return WHY_BAD_LINE;
	r->method_name = (struct span){ r->line, (uint32_t)(sp - line) };
	target = r->line + r->method_name.len + 1;
	r->version.off = (uint32_t)(sp2 + 1 - buf);
	r->version.len = end - r->version.off;
	if ((why = version_of(r, sp2 + 1, r->version.len)) != WHY_NONE ||
	    (why = method_allowed(r, line, r->method_name.len)) != WHY_NONE)
		return why;
	r->target_text =
	    (struct span){ target, (uint32_t)(sp2 - buf) - target };
	if (r->target_text.len > limits->target_size)
		return WHY_TARGET_TOO_LONG;
	why = target_parse(&r->target, buf, target, r->target_text.len,
	    r->method == METHOD_OPTIONS);
	r->state = R_FIELDS;
	r->first = end + 2;
	return why;
}

/* --- fields */

static enum why
field_line(struct request *r, const char *buf, uint32_t end,
    const struct head_limits *limits)
{
	struct field f;

	if (end + 2 - r->first >= limits->fields_size ||
	    end - r->line >= FIELD_LINE_MAX)
		return WHY_FIELDS_TOO_LARGE;
	if (end == r->line) {
		r->head_len = end + 2;
		r->state = R_DONE;
		return check(r, buf);
	}
	if (!field_parse(&f, buf, r->line, end, FIELD_SPACE_REFUSED))
		return WHY_BAD_FIELD;
	if (!fields_add(&r->fields, &f, limits->fields_max))
		return WHY_FIELDS_TOO_LARGE;
	return WHY_NONE;
}

/* A line whose end has not come yet: whether it can still become right.  A
 * client that speaks something else (TLS) need not wait for the deadline. */
static enum why
unfinished(const struct request *r, const char *buf, uint32_t len,
    const struct head_limits *limits)
{
	if (r->state == R_FIELDS) {
		if (len - r->first >= limits->fields_size ||
		    len - r->line > FIELD_LINE_MAX)
			return WHY_FIELDS_TOO_LARGE;
		return WHY_NONE;
	}
	for (uint32_t i = r->scan; i < len; i++)
		if ((buf[i] < 0x20 || buf[i] > 0x7e) && buf[i] != '\r')
			return WHY_BAD_LINE;
	if (len > r->line && buf[r->line] != '\r' &&
	    !field_is_token(buf + r->line, 1))
		return WHY_BAD_LINE;
	if (len - r->line >
	    METHOD_LEN_MAX + limits->target_size + VERSION_LEN + 4)
		return WHY_TARGET_TOO_LONG;
	return WHY_NONE;
}

/* --- all together */

/* The host comes from the target if that has one, but there must be one Host
 * field in any case (HTTP/1.0: none will do). */
static enum why
check_host(struct request *r, const char *buf)
{
	const struct field *f = fields_find(&r->fields, FIELD_HOST, NULL);

	if (f == NULL && r->minor >= 1)
		return WHY_BAD_HOST;
	if (f != NULL) {
		if (fields_find(&r->fields, FIELD_HOST, f) != NULL ||
		    !target_host(buf + f->value, f->value_len, r->host,
			&r->host_len))
			return WHY_BAD_HOST;
		r->authority = (struct span){ f->value, f->value_len };
	}
	if (r->target.authority.len == 0)
		return WHY_NONE;
	r->authority = r->target.authority;
	return target_host(buf + r->authority.off, r->authority.len, r->host,
		   &r->host_len) ?
	    WHY_NONE :
	    WHY_BAD_HOST;
}

static enum why
check_expect(struct request *r, const char *buf)
{
	const struct field *f = fields_find(&r->fields, FIELD_EXPECT, NULL);

	if (f == NULL || r->minor == 0)
		return WHY_NONE;
	if (!field_is(buf + f->value, f->value_len, "100-continue") ||
	    fields_find(&r->fields, FIELD_EXPECT, f) != NULL ||
	    r->body.kind == FRAMING_NONE || r->method == METHOD_GET ||
	    r->method == METHOD_HEAD || r->method == METHOD_OPTIONS)
		return WHY_BAD_EXPECT;
	r->expect = true;
	return WHY_NONE;
}

/* Which upgrade is passed on.  Everything doubtful is none at all: the
 * request then goes its way as a plain one. */
static enum why
check_upgrade(struct request *r, const char *buf)
{
	const struct fields *fs = &r->fields;
	const struct field *f = fields_find(fs, FIELD_UPGRADE, NULL);

	if (f == NULL || r->minor == 0 || r->method != METHOD_GET ||
	    r->body.kind != FRAMING_NONE || !r->connection.upgrade ||
	    fields_list(fs, buf, FIELD_UPGRADE, "h2c") ||
	    fields_have(fs, FIELD_HTTP2_SETTINGS) ||
	    fields_find(fs, FIELD_UPGRADE, f) != NULL)
		return WHY_NONE;
	if (!field_is(buf + f->value, f->value_len, "websocket")) {
		r->upgrade = UPGRADE_OTHER;
		return WHY_NONE;
	}
	r->upgrade = UPGRADE_WEBSOCKET;
	f = fields_find(fs, FIELD_WEBSOCKET_KEY, NULL);
	if (f == NULL || f->value_len != WEBSOCKET_KEY ||
	    fields_find(fs, FIELD_WEBSOCKET_KEY, f) != NULL)
		return WHY_BAD_UPGRADE;
	return WHY_NONE;
}

static enum why
check(struct request *r, const char *buf)
{
	const struct fields *fs = &r->fields;
	enum why why;

	if (!fields_connection(fs, buf, &r->connection))
		return WHY_BAD_FIELD;
	if ((why = check_host(r, buf)) != WHY_NONE ||
	    (why = framing_of_request(fs, buf, r->minor, &r->body)) !=
		WHY_NONE ||
	    (why = check_expect(r, buf)) != WHY_NONE ||
	    (why = check_upgrade(r, buf)) != WHY_NONE)
		return why;
	r->keep_alive =
	    !r->connection.close && (r->minor >= 1 || r->connection.keep_alive);
	return WHY_NONE;
}
