/* compressible.c: see compressible.h. */
#include "proxyd/http/compressible.h"

#include <string.h>
#include <strings.h>

#include "common/base/io.h"

static enum compress_why judge_response(const struct compress_rules *,
    const struct response *, const char *base);
static enum compress_why judge_client(struct compressible *,
    const struct compress_rules *, const struct request *, const char *base);
static bool has_our_tag(const struct request *, const char *request_base,
    const struct response *, const char *response_base);

/* Statuses whose bodies somebody reads, and whole. */
static const struct {
	uint16_t low, high;
} statuses[] = {
	{ 200, 203 },
	{ 207, 208 },
	{ 400, 499 },
	{ 500, 599 },
};

/* What a field of the response forbids. */
static const struct {
	enum field_id field;
	const char *word; /* in its list; NULL: its being there is enough */
	enum compress_why why;
} obstacles[] = {
	{ FIELD_CONTENT_ENCODING, NULL, COMPRESS_ENCODED },
	{ FIELD_CONTENT_RANGE, NULL, COMPRESS_RANGE },
	{ FIELD_CACHE_CONTROL, "no-transform", COMPRESS_TRANSFORM },
	/* The node vouches for these very bytes; that is worth more. */
	{ FIELD_CONTENT_DIGEST, NULL, COMPRESS_DIGEST },
	{ FIELD_CONTENT_MD5, NULL, COMPRESS_DIGEST },
	{ FIELD_DIGEST, NULL, COMPRESS_DIGEST },
	{ FIELD_REPR_DIGEST, NULL, COMPRESS_DIGEST },
};

/* All that is text, and what is text by another name.  text/event-stream is
 * left out: each event is small, and wants to be there at once. */
static const char types[] =
    "text/* application/javascript application/x-javascript application/json "
    "application/ld+json application/manifest+json application/wasm "
    "application/xml application/rss+xml application/atom+xml "
    "application/xhtml+xml application/x-ndjson application/vnd.api+json "
    "application/vnd.ms-fontobject image/svg+xml image/bmp "
    "image/vnd.microsoft.icon image/x-icon font/ttf font/otf";

const char *
compress_why_word(enum compress_why why)
{
	static const char *const words[] = {
#define X(name, word) [COMPRESS_##name] = word,
		COMPRESS_WHY_TABLE(X)
#undef X
	};

	return words[why];
}

void
compressible_judge(struct compressible *c, const struct compress_rules *rules,
    struct request *req, const char *request_base, struct response *res,
    const char *response_base)
{
	*c = (struct compressible){ .coding = CODING_NONE };
	fields_identify_rest(&req->fields, request_base);
	fields_identify_rest(&res->fields, response_base);
	c->why = judge_response(rules, res, response_base);
	if (c->why == COMPRESS_YES) {
		c->varies = true;
		c->why = judge_client(c, rules, req, request_base);
		c->weak = c->why == COMPRESS_YES;
	} else if (res->status == 304) {
		c->weak = c->varies =
		    has_our_tag(req, request_base, res, response_base);
	}
}

static bool
status_has_body(uint16_t status)
{
	for (size_t i = 0; i < nitems(statuses); i++)
		if (status >= statuses[i].low && status <= statuses[i].high)
			return true;
	return false;
}

/* Whether a list of types has this one.  "text/" followed by a star names all
 * texts but event streams, which must be named themselves. */
static bool
lists_type(const char *list, const char *type, size_t len)
{
	while (*list != '\0') {
		size_t n = strcspn(list, " ");
		size_t same = n > 2 && list[n - 1] == '*' ? n - 1 : n;

		if (same == n ?
			n == len && strncasecmp(list, type, n) == 0 :
			len > same && strncasecmp(list, type, same) == 0 &&
			    !field_is(type, len, "text/event-stream"))
			return true;
		list += n + (list[n] == ' ');
	}
	return false;
}

bool
compressible_type(const char *list, const char *type, size_t len)
{
	return lists_type(*list != '\0' ? list : types, type, len);
}

static size_t
type_len(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] != ';' && text[n] != ' ' && text[n] != '\t')
		n++;
	return n;
}

static enum compress_why
judge_response(const struct compress_rules *rules, const struct response *res,
    const char *base)
{
	const struct fields *fs = &res->fields;
	const struct field *type;

	if (!status_has_body(res->status))
		return COMPRESS_STATUS;
	for (size_t i = 0; i < nitems(obstacles); i++)
		if (fields_have(fs, obstacles[i].field) &&
		    (obstacles[i].word == NULL ||
			fields_list(fs, base, obstacles[i].field,
			    obstacles[i].word)))
			return obstacles[i].why;
	if ((type = fields_find(fs, FIELD_CONTENT_TYPE, NULL)) == NULL ||
	    !compressible_type(rules->types, base + type->value,
		type_len(base + type->value, type->value_len)))
		return COMPRESS_TYPE;
	/* Also of an answer to HEAD: it says what GET would. */
	if (res->length_seen && res->body.length < rules->min)
		return COMPRESS_SMALL;
	return COMPRESS_YES;
}

/* Of two such fields nobody knows what is meant. */
static struct coding_wish
wish_of(const struct request *req, const char *base)
{
	const struct field *f =
	    fields_find(&req->fields, FIELD_ACCEPT_ENCODING, NULL);

	if (f == NULL ||
	    fields_find(&req->fields, FIELD_ACCEPT_ENCODING, f) != NULL)
		return coding_parse("", 0);
	return coding_parse(base + f->value, f->value_len);
}

static enum compress_why
judge_client(struct compressible *c, const struct compress_rules *rules,
    const struct request *req, const char *base)
{
	if (req->minor == 0)
		return COMPRESS_HTTP10;
	if (fields_list(&req->fields, base, FIELD_CACHE_CONTROL,
		"no-transform"))
		return COMPRESS_TRANSFORM;
	c->coding = coding_choose(wish_of(req, base), rules->codings);
	return c->coding != CODING_NONE ? COMPRESS_YES : COMPRESS_ACCEPT;
}

/* --- entity tags */

/*
 * A compressed body has the node's tag, weak.  A client that comes back with
 * it asks the node, which compares weakly (RFC 9110, section 13.1.2) and says
 * 304 with its own strong tag: out of that the client's must be made again,
 * or a cache would not find what it is about.
 */
static bool
has_our_tag(const struct request *req, const char *request_base,
    const struct response *res, const char *response_base)
{
	const struct field *tag = fields_find(&res->fields, FIELD_ETAG, NULL);
	const struct field *f = NULL;
	struct member m;

	if (tag == NULL || tag->value_len < 2 ||
	    response_base[tag->value] != '"')
		return false;
	while (
	    (f = fields_find(&req->fields, FIELD_IF_NONE_MATCH, f)) != NULL) {
		const char *at = request_base + f->value;
		const char *end = at + f->value_len;

		while (field_member(&at, end, &m))
			if (m.len == tag->value_len + 2 &&
			    memcmp(m.text, "W/", 2) == 0 &&
			    memcmp(m.text + 2, response_base + tag->value,
				tag->value_len) == 0)
				return true;
	}
	return false;
}
