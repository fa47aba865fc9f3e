/* target.c: see target.h. */
#include "proxyd/http/target.h"

#include <string.h>

#include "proxyd/http/fields.h"

#define PATH  1 /* may stand in a path or query */
#define HOST  2 /* in a host name */
#define V6    4 /* in an IPv6 literal */
#define DIGIT 8

/* Paths: all visible ASCII but '#' (what browsers leave unescaped, such as
 * '|', is nobody's delimiter); nothing above 0x7e. */
static const unsigned char kinds[256] = {
	['!' ... '"'] = PATH,
	['$' ... ','] = PATH,
	['-'] = PATH | HOST,
	['.'] = PATH | HOST | V6,
	['/'] = PATH,
	['0' ... '9'] = PATH | HOST | V6 | DIGIT,
	[':'] = PATH | V6,
	[';' ... '@'] = PATH,
	['A' ... 'F'] = PATH | HOST | V6,
	['G' ... 'Z'] = PATH | HOST,
	['[' ... '^'] = PATH,
	['_'] = PATH | HOST,
	['`'] = PATH,
	['a' ... 'f'] = PATH | HOST | V6,
	['g' ... 'z'] = PATH | HOST,
	['{' ... '~'] = PATH,
};

static bool
all(const char *text, size_t len, unsigned char kind)
{
	for (size_t i = 0; i < len; i++)
		if (!(kinds[(unsigned char)text[i]] & kind))
			return false;
	return true;
}

static enum why absolute(struct target *, const char *base, uint32_t off,
    uint32_t len, bool options);

enum why
target_parse(struct target *t, const char *base, uint32_t off, uint32_t len,
    bool options)
{
	memset(t, 0, sizeof(*t));
	if (len == 0 || !all(base + off, len, PATH))
		return WHY_BAD_TARGET;
	if (base[off] == '*' && len == 1) {
		t->star = true;
		return options ? WHY_NONE : WHY_BAD_TARGET;
	}
	if (base[off] != '/')
		return absolute(t, base, off, len, options);
	t->path = (struct span){ off, len };
	return target_stays(base + off, len) ? WHY_NONE : WHY_BAD_TARGET;
}

static enum why
absolute(struct target *t, const char *base, uint32_t off, uint32_t len,
    bool options)
{
	static const char https[] = "https://", http[] = "http://";
	const char *p = base + off;
	uint32_t from = sizeof(http) - 1, to;

	if (len >= sizeof(https) - 1 && field_is(p, sizeof(https) - 1, https))
		return WHY_MISDIRECTED; /* not over this connection */
	if (len < from || !field_is(p, from, http))
		return WHY_BAD_TARGET;
	for (to = from; to < len && p[to] != '/' && p[to] != '?'; to++)
		if (p[to] == '@')
			return WHY_BAD_TARGET;
	if (to == from)
		return WHY_BAD_TARGET;
	t->authority = (struct span){ off + from, to - from };
	t->path = (struct span){ off + to, len - to };
	t->star = options && to == len;
	t->slash = !t->star && (to == len || p[to] == '?');
	return target_stays(p + to, len - to) ? WHY_NONE : WHY_BAD_TARGET;
}

/* The byte at *i, decoded if it is an escaped '.' or '/': the only ones that
 * make segments.  *i moves behind it. */
static char
decoded(const char *path, size_t len, size_t *i)
{
	const char *p = path + *i;

	if (*p == '%' && len - *i >= 3 && p[1] == '2') {
		*i += 3;
		if (p[2] == 'e' || p[2] == 'E')
			return '.';
		if (p[2] == 'f' || p[2] == 'F')
			return '/';
		*i -= 3;
	}
	(*i)++;
	return *p;
}

bool
target_stays(const char *path, size_t len)
{
	size_t i = 0, dots = 0, bytes = 0;
	long depth = 0;

	if (memchr(path, '.', len) == NULL && memchr(path, '%', len) == NULL)
		return true;
	for (;;) {
		bool end = i >= len || path[i] == '?';
		char c = end ? '/' : decoded(path, len, &i);

		if (c != '/') {
			bytes++;
			dots += c == '.';
			continue;
		}
		if (bytes == 2 && dots == 2)
			depth--;
		else if (bytes > 0 && !(bytes == 1 && dots == 1))
			depth++;
		if (depth < 0)
			return false;
		if (end)
			return true;
		bytes = dots = 0;
	}
}

static bool
port_valid(const char *p, size_t len)
{
	unsigned long port = 0;

	if (len == 0)
		return true;
	if (*p++ != ':' || --len > 5 || !all(p, len, DIGIT))
		return false;
	for (size_t i = 0; i < len; i++)
		port = port * 10 + (unsigned long)(p[i] - '0');
	return port <= UINT16_MAX;
}

bool
target_host(const char *text, size_t len, char host[HOST_MAX_LEN + 1],
    uint8_t *host_len)
{
	const char *end = text + len, *to;

	if (len > 0 && *text == '[') {
		to = memchr(text, ']', len);
		if (to == NULL || to - text < 3 ||
		    !all(text + 1, (size_t)(to - text) - 1, V6))
			return false;
		to++;
	} else {
		to = memchr(text, ':', len);
		to = to == NULL ? end : to;
		if (!all(text, (size_t)(to - text), HOST))
			return false;
	}
	if (!port_valid(to, (size_t)(end - to)))
		return false;
	if (to - text > 1 && to[-1] == '.')
		to--;
	if (to == text || to - text > HOST_MAX_LEN)
		return false;
	*host_len = (uint8_t)(to - text);
	for (uint8_t i = 0; i < *host_len; i++)
		host[i] = text[i] >= 'A' && text[i] <= 'Z' ?
		    (char)(text[i] | 0x20) :
		    text[i];
	host[*host_len] = '\0';
	return true;
}
