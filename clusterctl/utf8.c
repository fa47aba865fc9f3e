/* utf8.c: see utf8.h. */
#include "clusterctl/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t decode(const unsigned char *p, size_t n, uint32_t *c);
static size_t expected(unsigned char lead);
static bool turns_terminal(uint32_t c);
static size_t put_control(unsigned char c, char *out);

size_t
utf8_clean(const void *bytes, size_t n, bool harmless, char *out)
{
	const unsigned char *p = bytes, *end = p + n;
	char *o = out;

	while (p < end) {
		uint32_t c;
		size_t len = decode(p, (size_t)(end - p), &c);
		bool crlf = c == '\r' && p + 1 < end && p[1] == '\n';

		if (len == 0 || (harmless && turns_terminal(c))) {
			memcpy(o, "\xef\xbf\xbd", 3);
			o += 3;
		} else if (harmless && (c < ' ' || c == 0x7f) && c != '\n' &&
		    c != '\t' && !crlf) {
			o += put_control(*p, o);
		} else {
			memcpy(o, p, len);
			o += len;
		}
		p += len > 0 ? len : 1;
	}
	return (size_t)(o - out);
}

void
utf8_quote(const char *name, char *out, size_t size)
{
	static const size_t longest = sizeof("\\377'") - 1;
	char *o = stpcpy(out, "$'");

	for (; *name != '\0' && (size_t)(o - out) + longest < size; name++)
		if (*name < ' ' || *name > '~' || *name == '\'' ||
		    *name == '\\')
			o += snprintf(o, longest, "\\%03o",
			    (unsigned char)*name);
		else
			*o++ = *name;
	memcpy(o, "'", 2);
}

size_t
utf8_whole(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = p[n - back];

		if ((c & 0xc0) == 0x80)
			continue;
		return expected(c) > back ? n - back : n;
	}
	return n;
}

/* The length of the character at p; 0: none is there. */
static size_t
decode(const unsigned char *p, size_t n, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = expected(p[0]);

	*c = 0;
	if (len == 0 || len > n)
		return 0;
	*c = len == 1 ? p[0] : p[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	if (*c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff))
		return 0;
	return len;
}

/* How long a character with this first byte is; 0: none begins so. */
static size_t
expected(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* C1 controls, and those that reorder what is shown. */
static bool
turns_terminal(uint32_t c)
{
	return (c >= 0x80 && c <= 0x9f) || (c >= 0x202a && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069);
}

static size_t
put_control(unsigned char c, char *out)
{
	out[0] = '^';
	out[1] = (char)(c ^ 0x40);
	return 2;
}
