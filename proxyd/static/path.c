/* path.c: see path.h. */
#include "proxyd/static/path.h"

#include <limits.h>
#include <string.h>

static bool end_segment(struct file_path *, size_t *start);

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at *i, decoded; -1 when it can be in no file's name.  An escaped
 * slash is no separator to a node, and can be in no name. */
static int
next_byte(const char *raw, size_t len, size_t *i)
{
	int c = (unsigned char)raw[*i];

	if (c == '%') {
		int high, low;

		if (len - *i < 3 || (high = hex(raw[*i + 1])) == -1 ||
		    (low = hex(raw[*i + 2])) == -1)
			return -1;
		c = high << 4 | low;
		*i += 2;
	}
	(*i)++;
	return c < ' ' || c == 0x7f || c == '/' ? -1 : c;
}

static bool
is_dots(const char *s, size_t len)
{
	return s[0] == '.' && (len == 1 || (len == 2 && s[1] == '.'));
}

bool
file_path_decode(struct file_path *p, const char *raw, size_t len)
{
	size_t start = 0, i = 1;

	p->len = 0;
	p->directory = p->normal = true;
	if (len == 0 || *raw != '/')
		return false;
	while (i < len) {
		int c;

		if (raw[i] == '/') {
			i++;
			if (!end_segment(p, &start))
				return false;
			continue;
		}
		/* Browsers take a backslash for a slash. */
		if ((c = next_byte(raw, len, &i)) == -1 ||
		    p->len + 1 >= FILE_PATH_MAX)
			return false;
		p->normal = p->normal && c != '\\';
		p->text[p->len++] = (char)c;
	}
	if (p->len > start) {
		bool dots = is_dots(p->text + start, p->len - start);

		if (!end_segment(p, &start))
			return false;
		p->directory = dots;
	}
	if (p->len > 0 && p->text[p->len - 1] == '/')
		p->len--;
	p->text[p->len] = '\0';
	return true;
}

/* A slash, or the end, behind text[*start, len): what is kept of it gets its
 * slash, and the next segment begins behind that. */
static bool
end_segment(struct file_path *p, size_t *start)
{
	const char *s = p->text + *start;
	size_t len = p->len - *start;

	if (len == 0 || (len == 1 && s[0] == '.')) {
		p->normal = false;
		p->len = (uint16_t)*start;
		return true;
	}
	if (len == 2 && s[0] == '.' && s[1] == '.') {
		size_t at = *start;

		p->normal = false;
		if (at == 0)
			return false;
		for (at--; at > 0 && p->text[at - 1] != '/'; at--)
			continue;
		p->len = (uint16_t)at;
		*start = at;
		return true;
	}
	if (len > NAME_MAX || p->len + 1 >= FILE_PATH_MAX)
		return false;
	p->text[p->len++] = '/';
	*start = p->len;
	return true;
}
