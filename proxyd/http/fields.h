/*
 * fields.h: the fields (headers) of a message: one line parsed, the list of
 * them, the values that are lists themselves.
 *
 * A field is a place in the buffer the head was read into; nothing is copied
 * and nothing allocated.  Offsets, not pointers, so that the bytes may move.
 */
#ifndef MUSTER_FIELDS_H
#define MUSTER_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELDS_MAX     128
#define FIELD_LINE_MAX (16U << 10)

/* X(name, first byte, last byte, "name"): the fields somebody here asks
 * for. */
#define FIELD_TABLE(X)                                        \
	X(HOST, 'h', 't', "host")                             \
	X(CONNECTION, 'c', 'n', "connection")                 \
	X(CONTENT_LENGTH, 'c', 'h', "content-length")         \
	X(TRANSFER_ENCODING, 't', 'g', "transfer-encoding")   \
	X(EXPECT, 'e', 't', "expect")                         \
	X(UPGRADE, 'u', 'e', "upgrade")                       \
	X(KEEP_ALIVE, 'k', 'e', "keep-alive")                 \
	X(PROXY_CONNECTION, 'p', 'n', "proxy-connection")     \
	X(PROXY, 'p', 'y', "proxy")                           \
	X(TE, 't', 'e', "te")                                 \
	X(TRAILER, 't', 'r', "trailer")                       \
	X(VIA, 'v', 'a', "via")                               \
	X(X_FORWARDED_FOR, 'x', 'r', "x-forwarded-for")       \
	X(X_FORWARDED_PROTO, 'x', 'o', "x-forwarded-proto")   \
	X(X_FORWARDED_HOST, 'x', 't', "x-forwarded-host")     \
	X(FORWARDED, 'f', 'd', "forwarded")                   \
	X(X_REAL_IP, 'x', 'p', "x-real-ip")                   \
	X(X_REQUEST_ID, 'x', 'd', "x-request-id")             \
	X(X_MUSTER_WHY, 'x', 'y', "x-muster-why")             \
	X(X_ACCEL_BUFFERING, 'x', 'g', "x-accel-buffering")   \
	X(MAX_FORWARDS, 'm', 's', "max-forwards")             \
	X(COOKIE, 'c', 'e', "cookie")                         \
	X(REFERER, 'r', 'r', "referer")                       \
	X(USER_AGENT, 'u', 't', "user-agent")                 \
	X(HTTP2_SETTINGS, 'h', 's', "http2-settings")         \
	X(WEBSOCKET_KEY, 's', 'y', "sec-websocket-key")       \
	X(WEBSOCKET_ACCEPT, 's', 't', "sec-websocket-accept") \
	X(DATE, 'd', 'e', "date")

/* X(name, "name"): those that only some sites' messages are asked for: they
 * are FIELD_OTHER until fields_identify_rest(). */
#define FIELD_REST_TABLE(X)                     \
	X(ACCEPT_ENCODING, "accept-encoding")   \
	X(ACCEPT_RANGES, "accept-ranges")       \
	X(CACHE_CONTROL, "cache-control")       \
	X(CONTENT_DIGEST, "content-digest")     \
	X(CONTENT_ENCODING, "content-encoding") \
	X(CONTENT_MD5, "content-md5")           \
	X(CONTENT_RANGE, "content-range")       \
	X(CONTENT_TYPE, "content-type")         \
	X(DIGEST, "digest")                     \
	X(ETAG, "etag")                         \
	X(IF_NONE_MATCH, "if-none-match")       \
	X(REPR_DIGEST, "repr-digest")           \
	X(VARY, "vary")

enum field_id {
	FIELD_OTHER,
#define X(name, ...) FIELD_##name,
	FIELD_TABLE(X) FIELD_REST_TABLE(X)
#undef X
	    FIELD_N
};

struct field {
	uint32_t name;	/* offset of the first byte of the line */
	uint32_t value; /* without white space around */
	uint32_t value_len;
	uint16_t name_len;
	uint8_t id;    /* enum field_id */
	uint8_t flags; /* FIELD_CANONICAL, FIELD_UNDERSCORE */
};

#define FIELD_CANONICAL	 1 /* the line is "name: value\r\n" to the byte */
#define FIELD_UNDERSCORE 2 /* the name has one: CGI takes it for a '-' */

struct fields {
	uint32_t n;
	uint64_t seen; /* bit i: enum field_id i is among them */
	struct field list[FIELDS_MAX];
};

_Static_assert(FIELD_N <= 64, "fields.seen has a bit for each");

/* White space before the colon: an error in requests, taken off in
 * responses (RFC 9112, section 5.1). */
enum field_space { FIELD_SPACE_REFUSED, FIELD_SPACE_DROPPED };

/*
 * Parses the line base[off, end), which leaves out its CRLF.  False when it
 * is no field: a name that is no token, no colon, a control byte in the
 * value, leading white space (folding).
 */
bool field_parse(struct field *, const char *base, uint32_t off, uint32_t end,
    enum field_space);

void fields_clear(struct fields *);

/* Appends; false when `max` (at most FIELDS_MAX) are there. */
bool fields_add(struct fields *, const struct field *, uint32_t max);

/* The first (or next after `after`) with this id; NULL: none. */
const struct field *fields_find(const struct fields *, enum field_id,
    const struct field *after);

static inline bool
fields_have(const struct fields *fs, enum field_id id)
{
	return fs->seen >> id & 1;
}

/* The name is a token. */
enum field_id field_identify(const char *name, size_t len);

/* Gives those of FIELD_REST_TABLE their ids. */
void fields_identify_rest(struct fields *, const char *base);

/* Whether text is `word` (lower case) in any case. */
bool field_is(const char *text, size_t len, const char *word);

/* One member of a comma-separated list. */
struct member {
	const char *text;
	size_t len;
};

/*
 * Walks a list: *at starts at the value's first byte and ends at `end`.
 * Members come without white space around; empty ones are passed over.
 */
bool field_member(const char **at, const char *end, struct member *);

/* Whether any field with this id lists `word` (lower case). */
bool fields_list(const struct fields *, const char *base, enum field_id,
    const char *word);

/* What the Connection fields of a message list. */
struct connection {
	bool close, keep_alive, upgrade;
	bool names_fields; /* and others, which may be names of fields */
};

#define CONNECTION_MAX 32 /* members: each is compared with each field */

/* False: there are more of them than anybody means. */
bool fields_connection(const struct fields *, const char *base,
    struct connection *);

/* Bytes that may stand in a method or field name; in a field value. */
bool field_is_token(const char *text, size_t len);
bool field_is_value(const char *text, size_t len);

/* Non-zero for token bytes; FIELD_UNDERSCORE for that one. */
extern const unsigned char field_token_byte[256];

#endif
