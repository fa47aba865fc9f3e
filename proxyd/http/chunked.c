/*
 * chunked.c: see chunked.h.
 *
 * The coding is one table: what each class of byte means in each state.  What
 * the table does not name is an error, so nothing is accepted by oversight.
 */
#include "proxyd/http/chunked.h"

#include <stdbool.h>
#include <string.h>

/* Classes of bytes.  No byte is in two. */
enum class {
	C_CTL, /* never right */
	C_HEX, /* also token bytes */
	C_TOKEN,
	C_SPACE, /* SP, HT */
	C_SEMI,
	C_EQUAL,
	C_QUOTE,
	C_BACKSLASH,
	C_COLON,
	C_OTHER, /* visible, or 0x80 and above */
	C_CR,
	C_LF,
	N_CLASSES
};

enum state {
	S_BAD,
	S_SIZE, /* the first digit */
	S_DIGITS,
	S_SIZE_LF,
	S_EXT_SPACE, /* before a ';' */
	S_EXT_START, /* before a name */
	S_EXT_NAME,
	S_EXT_NAMED, /* space behind a name */
	S_EXT_EQUAL, /* before a value */
	S_EXT_VALUE,
	S_EXT_QUOTED,
	S_EXT_ESCAPE,
	S_EXT_CLOSED, /* behind a quoted value */
	S_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_TRAILER, /* the first byte of a line */
	S_TRAILER_NAME,
	S_TRAILER_VALUE,
	S_TRAILER_LF,
	S_END_LF,
	S_DONE,
	N_STATES
};

static const uint8_t classes[256] = {
	['\t'] = C_SPACE,
	['\n'] = C_LF,
	['\r'] = C_CR,
	[' '] = C_SPACE,
	['!'] = C_TOKEN,
	['"'] = C_QUOTE,
	['#' ... '\''] = C_TOKEN,
	['('] = C_OTHER,
	[')'] = C_OTHER,
	['*'] = C_TOKEN,
	['+'] = C_TOKEN,
	[','] = C_OTHER,
	['-'] = C_TOKEN,
	['.'] = C_TOKEN,
	['/'] = C_OTHER,
	['0' ... '9'] = C_HEX,
	[':'] = C_COLON,
	[';'] = C_SEMI,
	['<'] = C_OTHER,
	['='] = C_EQUAL,
	['>'] = C_OTHER,
	['?'] = C_OTHER,
	['@'] = C_OTHER,
	['A' ... 'F'] = C_HEX,
	['G' ... 'Z'] = C_TOKEN,
	['['] = C_OTHER,
	['\\'] = C_BACKSLASH,
	[']'] = C_OTHER,
	['^' ... '`'] = C_TOKEN,
	['a' ... 'f'] = C_HEX,
	['g' ... 'z'] = C_TOKEN,
	['{'] = C_OTHER,
	['|'] = C_TOKEN,
	['}'] = C_OTHER,
	['~'] = C_TOKEN,
	[0x80 ... 0xff] = C_OTHER,
};

/* clang-format off */
#define TOKEN(s)   [C_HEX] = (s), [C_TOKEN] = (s)
#define PLAIN(s)   TOKEN(s), [C_SPACE] = (s), [C_SEMI] = (s), \
	[C_EQUAL] = (s), [C_COLON] = (s), [C_OTHER] = (s)
#define ANY(s)     PLAIN(s), [C_QUOTE] = (s), [C_BACKSLASH] = (s)

static const uint8_t moves[N_STATES][N_CLASSES] = {
	[S_SIZE]	  = { [C_HEX] = S_DIGITS },
	[S_DIGITS]	  = { [C_HEX] = S_DIGITS, [C_SPACE] = S_EXT_SPACE,
			      [C_SEMI] = S_EXT_START, [C_CR] = S_SIZE_LF },
	/* Its LF leads to S_DATA or S_TRAILER: chunk_begins() decides. */
	[S_SIZE_LF]	  = { [C_LF] = S_DATA },
	[S_EXT_SPACE]	  = { [C_SPACE] = S_EXT_SPACE,
			      [C_SEMI] = S_EXT_START },
	[S_EXT_START]	  = { [C_SPACE] = S_EXT_START, TOKEN(S_EXT_NAME) },
	[S_EXT_NAME]	  = { TOKEN(S_EXT_NAME), [C_SPACE] = S_EXT_NAMED,
			      [C_EQUAL] = S_EXT_EQUAL,
			      [C_SEMI] = S_EXT_START, [C_CR] = S_SIZE_LF },
	[S_EXT_NAMED]	  = { [C_SPACE] = S_EXT_NAMED,
			      [C_EQUAL] = S_EXT_EQUAL,
			      [C_SEMI] = S_EXT_START },
	[S_EXT_EQUAL]	  = { [C_SPACE] = S_EXT_EQUAL, TOKEN(S_EXT_VALUE),
			      [C_QUOTE] = S_EXT_QUOTED },
	[S_EXT_VALUE]	  = { TOKEN(S_EXT_VALUE), [C_SPACE] = S_EXT_SPACE,
			      [C_SEMI] = S_EXT_START, [C_CR] = S_SIZE_LF },
	[S_EXT_QUOTED]	  = { PLAIN(S_EXT_QUOTED),
			      [C_QUOTE] = S_EXT_CLOSED,
			      [C_BACKSLASH] = S_EXT_ESCAPE },
	[S_EXT_ESCAPE]	  = { ANY(S_EXT_QUOTED) },
	[S_EXT_CLOSED]	  = { [C_SPACE] = S_EXT_SPACE,
			      [C_SEMI] = S_EXT_START, [C_CR] = S_SIZE_LF },
	[S_DATA_CR]	  = { [C_CR] = S_DATA_LF },
	[S_DATA_LF]	  = { [C_LF] = S_SIZE },
	[S_TRAILER]	  = { TOKEN(S_TRAILER_NAME), [C_CR] = S_END_LF },
	[S_TRAILER_NAME]  = { TOKEN(S_TRAILER_NAME),
			      [C_COLON] = S_TRAILER_VALUE },
	[S_TRAILER_VALUE] = { ANY(S_TRAILER_VALUE),
			      [C_CR] = S_TRAILER_LF },
	[S_TRAILER_LF]	  = { [C_LF] = S_TRAILER },
	[S_END_LF]	  = { [C_LF] = S_DONE },
};
/* clang-format on */

static enum state entered(struct chunked *, enum state, char);
static bool digit(struct chunked *, char);

void
chunked_init(struct chunked *c)
{
	memset(c, 0, sizeof(*c));
	c->state = S_SIZE;
}

enum chunk_result
chunked_decode(struct chunked *c, char *data, size_t size,
    struct chunk_piece *piece, size_t *taken)
{
	size_t i = 0;

	*piece = (struct chunk_piece){ 0, 0 };
	while (i < size && c->state != S_DONE) {
		enum state next;

		if (c->state == S_DATA) {
			size_t n =
			    size - i < c->left ? size - i : (size_t)c->left;

			if (piece->len == 0)
				piece->start = i;
			else
				memmove(data + piece->start + piece->len,
				    data + i, n);
			piece->len += n;
			i += n;
			if ((c->left -= n) == 0)
				c->state = S_DATA_CR;
			continue;
		}
		next = moves[c->state][classes[(unsigned char)data[i]]];
		next = entered(c, next, data[i]);
		if (next == S_BAD) {
			*taken = i;
			return c->state >= S_TRAILER ? CHUNK_BAD_TRAILER :
						       CHUNK_BAD;
		}
		c->state = (uint8_t)next;
		i++;
	}
	*taken = i;
	return c->state == S_DONE ? CHUNK_DONE : CHUNK_MORE;
}

size_t
chunked_head(char *data, uint64_t size)
{
	char *p = data;

	*--p = '\n';
	*--p = '\r';
	do
		*--p = "0123456789abcdef"[size & 15];
	while ((size >>= 4) != 0);
	return (size_t)(data - p);
}

/* What a byte does beside moving on: sizes grow, limits are kept. */
static enum state
entered(struct chunked *c, enum state to, char byte)
{
	if (c->state == S_SIZE_LF && to == S_DATA) {
		c->digits = 0;
		c->ext = 0;
		return c->left == 0 ? S_TRAILER : S_DATA;
	}
	if (to == S_DIGITS)
		return digit(c, byte) ? S_DIGITS : S_BAD;
	if (to >= S_EXT_SPACE && to <= S_EXT_CLOSED)
		if (++c->ext > CHUNK_EXT_MAX ||
		    ++c->ext_all > CHUNK_EXT_ALL_MAX)
			return S_BAD;
	if (c->state >= S_TRAILER && ++c->trailer > CHUNK_TRAILER_MAX)
		return S_BAD;
	if (c->state == S_TRAILER && to == S_TRAILER_NAME &&
	    ++c->trailers > CHUNK_TRAILER_LINES)
		return S_BAD;
	return to;
}

/* Sixteen digits at most, and no size that a signed offset cannot hold. */
static bool
digit(struct chunked *c, char byte)
{
	unsigned value = byte <= '9' ? (unsigned)(byte - '0') :
				       (unsigned)((byte | 0x20) - 'a' + 10);

	if (++c->digits > 16 || c->left > INT64_MAX >> 4)
		return false;
	c->left = c->left << 4 | value;
	return true;
}
