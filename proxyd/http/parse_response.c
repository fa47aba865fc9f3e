/* parse_response.c: see parse_response.h. */
#include "proxyd/http/parse_response.h"

#include <string.h>

#define STATUS_LINE_MIN	  12 /* "HTTP/1.1 200" */
#define STATUS_LINE_START "HTTP/1."

enum state { P_LINE, P_FIELDS, P_DONE };

static bool may_become_head(const struct response *, const char *buf,
    size_t len);
static bool status_line(struct response *, const char *buf, uint32_t end);
static bool field_line(struct response *, const char *buf, uint32_t end,
    const struct head_limits *, bool head);
static bool check(struct response *, const char *buf, bool head);

void
response_init(struct response *r)
{
	memset(r, 0, offsetof(struct response, fields));
	fields_clear(&r->fields);
}

enum parse_result
parse_response(struct response *r, const char *buf, size_t len,
    const struct head_limits *limits, bool head)
{
	while (r->state != P_DONE) {
		const char *lf = memchr(buf + r->scan, '\n', len - r->scan);
		uint32_t end;

		if (lf == NULL) {
			r->scan = (uint32_t)len;
			return !may_become_head(r, buf, len) ||
				len - r->line > FIELD_LINE_MAX ||
				len - r->first >= limits->fields_size ?
			    PARSE_BAD :
			    PARSE_MORE;
		}
		end = (uint32_t)(lf - buf);
		if (end == r->line || buf[--end] != '\r')
			return PARSE_BAD;
		if (!(r->state == P_LINE ?
			    status_line(r, buf, end) :
			    field_line(r, buf, end, limits, head)))
			return PARSE_BAD;
		r->line = r->scan = end + 2;
	}
	return PARSE_DONE;
}

static bool
starts_right(const char *p, size_t len)
{
	static const char start[] = STATUS_LINE_START;

	return memcmp(p, start,
		   len < sizeof(start) - 1 ? len : sizeof(start) - 1) == 0;
}

/* What is no HTTP at all has perhaps no line either to be waited for. */
static bool
may_become_head(const struct response *r, const char *buf, size_t len)
{
	return r->state != P_LINE || starts_right(buf + r->line, len - r->line);
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK"; the reason and its space may be missing. */
static bool
status_line(struct response *r, const char *buf, uint32_t end)
{
	const char *p = buf + r->line;
	uint32_t len = end - r->line;

	if (len < STATUS_LINE_MIN || !starts_right(p, len) || !is_digit(p[7]) ||
	    p[8] != ' ' || p[9] < '1' || p[9] > '5' || !is_digit(p[10]) ||
	    !is_digit(p[11]))
		return false;
	if (len > STATUS_LINE_MIN && p[STATUS_LINE_MIN] != ' ')
		return false;
	r->minor = p[7] != '0';
	r->status =
	    (uint16_t)((p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0'));
	if (len > STATUS_LINE_MIN + 1)
		r->reason = (struct span){ r->line + STATUS_LINE_MIN + 1,
			len - STATUS_LINE_MIN - 1 };
	r->state = P_FIELDS;
	r->first = end + 2;
	return field_is_value(buf + r->reason.off, r->reason.len);
}

static bool
field_line(struct response *r, const char *buf, uint32_t end,
    const struct head_limits *limits, bool head)
{
	struct field f;

	if (end + 2 - r->first >= limits->fields_size ||
	    end - r->line >= FIELD_LINE_MAX)
		return false;
	if (end == r->line) {
		r->head_len = end + 2;
		r->state = P_DONE;
		return check(r, buf, head);
	}
	return field_parse(&f, buf, r->line, end, FIELD_SPACE_DROPPED) &&
	    fields_add(&r->fields, &f, limits->fields_max);
}

/* RFC 9110: statuses whose responses end with the head. */
static bool
bodiless(unsigned status)
{
	return status < 200 || status == 204 || status == 304;
}

static bool
check(struct response *r, const char *buf, bool head)
{
	const struct fields *fs = &r->fields;

	if (!fields_connection(fs, buf, &r->connection) ||
	    framing_of_response(fs, buf, r->minor, head || bodiless(r->status),
		&r->body) != WHY_NONE)
		return false;
	r->length_seen = fields_have(fs, FIELD_CONTENT_LENGTH);
	r->keep_alive =
	    !r->connection.close && (r->minor >= 1 || r->connection.keep_alive);
	/* A 204 that announces a body may have sent one: what follows on its
	 * connection cannot be trusted. */
	if (r->status == 204 &&
	    (r->body.length > 0 || fields_have(fs, FIELD_TRANSFER_ENCODING)))
		r->keep_alive = false;
	return true;
}
