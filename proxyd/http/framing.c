/* framing.c: see framing.h. */
#include "proxyd/http/framing.h"

#include <stddef.h>

#define LENGTH_DIGITS 19 /* INT64_MAX has so many */

enum length { LENGTH_ABSENT, LENGTH_GIVEN, LENGTH_BAD, N_LENGTHS };

enum coding {
	CODING_ABSENT,
	CODING_CHUNKED, /* alone */
	CODING_MORE,	/* others, then chunked: a body we cannot read */
	CODING_BAD,	/* its end cannot be known */
	N_CODINGS
};

struct decision {
	uint8_t kind; /* enum framing, where why is WHY_NONE */
	uint8_t why;  /* enum why */
};

#define REFUSE(w)                     \
	{                             \
		FRAMING_NONE, WHY_##w \
	}
#define TAKE(k)                       \
	{                             \
		FRAMING_##k, WHY_NONE \
	}

/* RFC 9112, section 6.3, without its licences to repair. */
static const struct decision requests[N_CODINGS][N_LENGTHS] = {
	[CODING_ABSENT] = {
		[LENGTH_ABSENT] = TAKE(NONE),
		[LENGTH_GIVEN] = TAKE(LENGTH),
		[LENGTH_BAD] = REFUSE(BAD_LENGTH),
	},
	[CODING_CHUNKED] = {
		[LENGTH_ABSENT] = TAKE(CHUNKED),
		[LENGTH_GIVEN] = REFUSE(BAD_LENGTH),
		[LENGTH_BAD] = REFUSE(BAD_LENGTH),
	},
	[CODING_MORE] = {
		[LENGTH_ABSENT] = REFUSE(CODING_UNKNOWN),
		[LENGTH_GIVEN] = REFUSE(BAD_LENGTH),
		[LENGTH_BAD] = REFUSE(BAD_LENGTH),
	},
	[CODING_BAD] = {
		[LENGTH_ABSENT] = REFUSE(BAD_CODING),
		[LENGTH_GIVEN] = REFUSE(BAD_CODING),
		[LENGTH_BAD] = REFUSE(BAD_CODING),
	},
};

static const struct decision responses[N_CODINGS][N_LENGTHS] = {
	[CODING_ABSENT] = {
		[LENGTH_ABSENT] = TAKE(CLOSE),
		[LENGTH_GIVEN] = TAKE(LENGTH),
		[LENGTH_BAD] = REFUSE(NODE_GARBAGE),
	},
	[CODING_CHUNKED] = {
		[LENGTH_ABSENT] = TAKE(CHUNKED),
		[LENGTH_GIVEN] = REFUSE(NODE_GARBAGE),
		[LENGTH_BAD] = REFUSE(NODE_GARBAGE),
	},
	[CODING_MORE] = {
		[LENGTH_ABSENT] = REFUSE(NODE_GARBAGE),
		[LENGTH_GIVEN] = REFUSE(NODE_GARBAGE),
		[LENGTH_BAD] = REFUSE(NODE_GARBAGE),
	},
	[CODING_BAD] = {
		[LENGTH_ABSENT] = REFUSE(NODE_GARBAGE),
		[LENGTH_GIVEN] = REFUSE(NODE_GARBAGE),
		[LENGTH_BAD] = REFUSE(NODE_GARBAGE),
	},
};

static enum length length_of(const struct fields *, const char *base,
    uint64_t *);
static enum coding coding_of(const struct fields *, const char *base);

enum why
framing_of_request(const struct fields *fs, const char *base, unsigned minor,
    struct body_framing *body)
{
	enum coding coding = coding_of(fs, base);
	uint64_t length = 0;
	const struct decision *d =
	    &requests[coding][length_of(fs, base, &length)];

	/* HTTP/1.0 knows no codings: whoever sends one means trouble. */
	if (minor == 0 && coding != CODING_ABSENT)
		return WHY_BAD_CODING;
	body->kind = d->kind;
	body->length = length;
	return d->why;
}

enum why
framing_of_response(const struct fields *fs, const char *base, unsigned minor,
    bool bodiless, struct body_framing *body)
{
	enum coding coding = coding_of(fs, base);
	uint64_t length = 0;
	const struct decision *d =
	    &responses[coding][length_of(fs, base, &length)];

	if (minor == 0 && coding != CODING_ABSENT)
		return WHY_NODE_GARBAGE;
	body->kind = bodiless ? FRAMING_NONE : d->kind;
	body->length = length;
	return d->why;
}

/* One field, decimal digits only, no wrap. */
static enum length
length_of(const struct fields *fs, const char *base, uint64_t *length)
{
	const struct field *f = fields_find(fs, FIELD_CONTENT_LENGTH, NULL);
	uint64_t n = 0;

	if (f == NULL)
		return LENGTH_ABSENT;
	if (fields_find(fs, FIELD_CONTENT_LENGTH, f) != NULL ||
	    f->value_len == 0 || f->value_len > LENGTH_DIGITS)
		return LENGTH_BAD;
	for (uint32_t i = 0; i < f->value_len; i++) {
		char c = base[f->value + i];

		if (c < '0' || c > '9')
			return LENGTH_BAD;
		n = n * 10 + (uint64_t)(c - '0');
	}
	if (n > INT64_MAX)
		return LENGTH_BAD;
	*length = n;
	return LENGTH_GIVEN;
}

static enum coding
coding_of(const struct fields *fs, const char *base)
{
	const struct field *f = fields_find(fs, FIELD_TRANSFER_ENCODING, NULL);
	unsigned n = 0, n_chunked = 0;
	bool last_chunked = false;
	struct member m;

	if (f == NULL)
		return CODING_ABSENT;
	if (field_is(base + f->value, f->value_len, "chunked") &&
	    fields_find(fs, FIELD_TRANSFER_ENCODING, f) == NULL)
		return CODING_CHUNKED;
	for (; f != NULL; f = fields_find(fs, FIELD_TRANSFER_ENCODING, f)) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m)) {
			last_chunked = field_is(m.text, m.len, "chunked");
			n_chunked += last_chunked;
			n++;
		}
	}
	return n > 1 && last_chunked && n_chunked == 1 ? CODING_MORE :
							 CODING_BAD;
}
