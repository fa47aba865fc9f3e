/* mime.c: see mime.h. */
#include "proxyd/static/mime.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/io.h"

#define UNKNOWN "application/octet-stream"

struct row {
	const char *extension, *type;
	unsigned order; /* of equal extensions the first stands */
};

struct mime {
	char *text; /* what the rows of the file point into */
	struct row *rows;
	size_t n, room;
};

static const char builtin[] = "text/html html htm\n"
			      "text/css css\n"
			      "text/javascript js mjs\n"
			      "text/plain txt\n"
			      "text/csv csv\n"
			      "text/calendar ics\n"
			      "application/json json map\n"
			      "application/manifest+json webmanifest\n"
			      "application/xml xml\n"
			      "application/pdf pdf\n"
			      "application/wasm wasm\n"
			      "application/zip zip\n"
			      "application/gzip gz tgz\n"
			      "image/png png\n"
			      "image/jpeg jpg jpeg\n"
			      "image/gif gif\n"
			      "image/webp webp\n"
			      "image/avif avif\n"
			      "image/svg+xml svg\n"
			      "image/vnd.microsoft.icon ico\n"
			      "font/woff woff\n"
			      "font/woff2 woff2\n"
			      "font/ttf ttf\n"
			      "font/otf otf\n"
			      "audio/mpeg mp3\n"
			      "video/mp4 mp4 m4v\n"
			      "video/webm webm\n";

static int read_table(struct mime *, char *text);
static int read_line(struct mime *, char *line);
static int compare(const void *, const void *);

struct mime *
mime_new(const char *text, size_t size)
{
	struct mime *m = calloc(1, sizeof(*m));
	size_t len = text != NULL ? size : 0;

	if (m == NULL)
		return NULL;
	/* The system's table first: it stands where both have a row. */
	if ((m->text = malloc(len + sizeof(builtin) + 1)) == NULL) {
		mime_free(m);
		return NULL;
	}
	if (len > 0)
		memcpy(m->text, text, len);
	m->text[len] = '\n';
	memcpy(m->text + len + 1, builtin, sizeof(builtin));
	/* Nothing behind a NUL is read. */
	for (size_t i = 0; i < len; i++)
		if (m->text[i] == '\0')
			m->text[i] = ' ';
	if (read_table(m, m->text) == -1) {
		mime_free(m);
		return NULL;
	}
	qsort(m->rows, m->n, sizeof(*m->rows), compare);
	return m;
}

void
mime_free(struct mime *m)
{
	if (m == NULL)
		return;
	free(m->rows);
	free(m->text);
	free(m);
}

static int
read_table(struct mime *m, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")) != NULL) {
		line[strcspn(line, "#")] = '\0';
		if (read_line(m, line) == -1)
			return -1;
	}
	return 0;
}

/* A type with bytes that no field may have must not get into one. */
static bool
type_is_right(const char *type)
{
	size_t len = strlen(type);

	for (size_t i = 0; i < len; i++)
		if (type[i] <= ' ' || type[i] > '~')
			return false;
	return len < MIME_TYPE_MAX && strchr(type, '/') != NULL;
}

static int
read_line(struct mime *m, char *line)
{
	char *type, *extension, *rest = line;

	type = strtok_r(line, " \t\r", &rest);
	if (type == NULL || !type_is_right(type))
		return 0;
	while ((extension = strtok_r(NULL, " \t\r", &rest)) != NULL) {
		if (m->n == m->room) {
			size_t room = m->room == 0 ? 256 : m->room * 2;
			struct row *rows =
			    reallocarray(m->rows, room, sizeof(*rows));

			if (rows == NULL)
				return -1;
			m->rows = rows;
			m->room = room;
		}
		m->rows[m->n] = (struct row){ extension, type, (unsigned)m->n };
		m->n++;
	}
	return 0;
}

static int
compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = strcasecmp(x->extension, y->extension);

	return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

const char *
mime_type(const struct mime *m, const char *extension)
{
	size_t low = 0, high = m->n;

	/* The first row that is not before it. */
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (strcasecmp(m->rows[mid].extension, extension) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->n || strcasecmp(m->rows[low].extension, extension) != 0)
		return UNKNOWN;
	return m->rows[low].type;
}

bool
mime_is_text(const char *type)
{
	return strncmp(type, "text/", 5) == 0;
}
