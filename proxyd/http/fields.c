/* fields.c: see fields.h. */
#include "proxyd/http/fields.h"

#include <string.h>

#include "common/base/io.h"

/* RFC 9110, section 5.6.2. */
const unsigned char field_token_byte[256] = {
	['!'] = 1,
	['#' ... '\''] = 1,
	['*'] = 1,
	['+'] = 1,
	['-'] = 1,
	['.'] = 1,
	['0' ... '9'] = 1,
	['A' ... 'Z'] = 1,
	['^'] = 1,
	['_'] = 1 | FIELD_UNDERSCORE,
	['`' ... 'z'] = 1,
	['|'] = 1,
	['~'] = 1,
};

/* A perfect hash of the names of FIELD_TABLE: two of them in one slot are a
 * compiler's error here (initializer overridden); then pick other factors. */
#define SLOT(first, last, len) (((first)*40U + (last)*50U + (len)) % 128)

static const struct {
	const char *name;
	uint8_t len, id;
} known[128] = {
#define X(name, first, last, text)                                        \
	[SLOT(first, last, sizeof(text) - 1)] = { text, sizeof(text) - 1, \
		FIELD_##name },
	FIELD_TABLE(X)
#undef X
};

static const struct {
	const char *name;
	uint8_t len, id;
} rest[] = {
#define X(name, text) { text, sizeof(text) - 1, FIELD_##name },
	FIELD_REST_TABLE(X)
#undef X
};

static inline unsigned char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) :
				      (unsigned char)c;
}

static inline bool
is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Whether eight bytes of a token are those of a word (lower case).  Of what
 * may stand in a token only letters become what a word has by this bit. */
static inline bool
eight_are(const char *token, const char *word)
{
	uint64_t a, b;

	memcpy(&a, token, 8);
	memcpy(&b, word, 8);
	return (a | 0x2020202020202020) == b;
}

/* The same of all; the last eight may overlap those before. */
static inline bool
token_is(const char *token, const char *word, size_t len)
{
	size_t i = 0;

	if (len < 8) {
		while (i < len && (token[i] | 0x20) == word[i])
			i++;
		return i == len;
	}
	while (i + 8 <= len && eight_are(token + i, word + i))
		i += 8;
	return i + 8 > len && eight_are(token + len - 8, word + len - 8);
}

bool
field_parse(struct field *f, const char *base, uint32_t off, uint32_t end,
    enum field_space space)
{
	uint32_t name_end = off, colon, from, to = end;
	unsigned char byte, seen = 0;

	while (name_end < end &&
	    (byte = field_token_byte[(unsigned char)base[name_end]]) != 0) {
		seen |= byte;
		name_end++;
	}
	colon = name_end;
	if (space == FIELD_SPACE_DROPPED)
		while (colon < end && is_space(base[colon]))
			colon++;
	if (name_end == off || name_end - off > UINT16_MAX || colon == end ||
	    base[colon] != ':')
		return false;
	for (from = colon + 1; from < end && is_space(base[from]); from++)
		;
	while (to > from && is_space(base[to - 1]))
		to--;
	if (!field_is_value(base + from, to - from))
		return false;
	*f = (struct field){
		.name = off,
		.value = from,
		.value_len = to - from,
		.name_len = (uint16_t)(name_end - off),
		.id = (uint8_t)field_identify(base + off, name_end - off),
		.flags = seen & FIELD_UNDERSCORE,
	};
	if (colon == name_end && from == colon + 2 && base[colon + 1] == ' ' &&
	    to == end)
		f->flags |= FIELD_CANONICAL;
	return true;
}

void
fields_clear(struct fields *fs)
{
	fs->n = 0;
	fs->seen = 0;
}

bool
fields_add(struct fields *fs, const struct field *f, uint32_t max)
{
	if (fs->n >= max || fs->n >= FIELDS_MAX)
		return false;
	fs->list[fs->n++] = *f;
	fs->seen |= UINT64_C(1) << f->id;
	return true;
}

const struct field *
fields_find(const struct fields *fs, enum field_id id,
    const struct field *after)
{
	const struct field *f = after == NULL ? fs->list : after + 1;

	if (!fields_have(fs, id))
		return NULL;
	for (; f < fs->list + fs->n; f++)
		if (f->id == id)
			return f;
	return NULL;
}

enum field_id
field_identify(const char *name, size_t len)
{
	unsigned slot;

	if (len == 0)
		return FIELD_OTHER;
	slot = SLOT(lower(name[0]), lower(name[len - 1]), (unsigned)len);
	if (known[slot].len != len || !token_is(name, known[slot].name, len))
		return FIELD_OTHER;
	return known[slot].id;
}

void
fields_identify_rest(struct fields *fs, const char *base)
{
	for (uint32_t i = 0; i < fs->n; i++) {
		struct field *f = &fs->list[i];

		for (size_t k = 0; f->id == FIELD_OTHER && k < nitems(rest);
		     k++)
			if (f->name_len == rest[k].len &&
			    field_is(base + f->name, f->name_len, rest[k].name))
				f->id = rest[k].id;
		fs->seen |= UINT64_C(1) << f->id;
	}
}

bool
field_is(const char *text, size_t len, const char *word)
{
	for (size_t i = 0; i < len; i++)
		if (word[i] == '\0' || lower(text[i]) != (unsigned char)word[i])
			return false;
	return word[len] == '\0';
}

bool
field_member(const char **at, const char *end, struct member *m)
{
	const char *p = *at, *to;

	while (p < end && (is_space(*p) || *p == ','))
		p++;
	if (p == end) {
		*at = end;
		return false;
	}
	m->text = p;
	while (p < end && *p != ',')
		p++;
	for (to = p; is_space(to[-1]); to--)
		;
	m->len = (size_t)(to - m->text);
	*at = p;
	return true;
}

bool
fields_list(const struct fields *fs, const char *base, enum field_id id,
    const char *word)
{
	const struct field *f = NULL;
	struct member m;

	while ((f = fields_find(fs, id, f)) != NULL) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m))
			if (field_is(m.text, m.len, word))
				return true;
	}
	return false;
}

bool
fields_connection(const struct fields *fs, const char *base,
    struct connection *c)
{
	const struct field *f = NULL;
	struct member m;
	unsigned n = 0;

	memset(c, 0, sizeof(*c));
	while ((f = fields_find(fs, FIELD_CONNECTION, f)) != NULL) {
		const char *at = base + f->value, *end = at + f->value_len;

		while (field_member(&at, end, &m)) {
			if (++n > CONNECTION_MAX)
				return false;
			if (field_is(m.text, m.len, "close"))
				c->close = true;
			else if (field_is(m.text, m.len, "keep-alive"))
				c->keep_alive = true;
			else if (field_is(m.text, m.len, "upgrade"))
				c->upgrade = true;
			else
				c->names_fields = true;
		}
	}
	return true;
}

bool
field_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!field_token_byte[(unsigned char)text[i]])
			return false;
	return len > 0;
}

/* Whether one of eight bytes is below 0x20 or 0x7f.  May also say so of a
 * byte above another such one, never instead of it. */
static inline bool
has_control(uint64_t eight)
{
	const uint64_t ones = 0x0101010101010101, tops = ones << 7;
	uint64_t low = (eight - ones * 0x20) & ~eight & tops;
	uint64_t del = eight ^ ones * 0x7f;

	return (low | ((del - ones) & ~del & tops)) != 0;
}

static inline bool
value_byte(unsigned char c)
{
	return (c >= 0x20 && c != 0x7f) || c == '\t';
}

/* With a control byte among eight they are looked at one by one: it may be a
 * tab, or none (see above). */
static inline bool
eight_value_bytes(const char *text)
{
	uint64_t eight;

	memcpy(&eight, text, 8);
	if (!has_control(eight))
		return true;
	for (size_t i = 0; i < 8; i++)
		if (!value_byte((unsigned char)text[i]))
			return false;
	return true;
}

bool
field_is_value(const char *text, size_t len)
{
	size_t i = 0;

	if (len < 8) {
		while (i < len && value_byte((unsigned char)text[i]))
			i++;
		return i == len;
	}
	while (i + 8 <= len && eight_value_bytes(text + i))
		i += 8;
	return i + 8 > len && eight_value_bytes(text + len - 8);
}
