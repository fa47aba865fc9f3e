/* access_log.c: see access_log.h. */
#include "proxyd/http/access_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/io.h"
#include "proxyd/http/writer.h"

/* Bytes one value may take in a line, escaped; twelve of them and what is
 * between stay below LOG_LINE_MAX, so that no line is ever lost to length. */
#define VALUE_MAX 2400

static const char hex[] = "0123456789abcdef";

/* `json` tells which escape a byte gets. */
static void
put_escaped(struct writer *w, struct log_text t, bool json)
{
	size_t from = 0, i, size = 0;

	for (i = 0; i < t.len && size < VALUE_MAX; i++) {
		unsigned char c = (unsigned char)t.at[i];

		size++;
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
			continue;
		put(w, t.at + from, i - from);
		from = i + 1;
		size += 5;
		if (json)
			PUT(w, "\\u00");
		else
			PUT(w, "\\x");
		put(w, &hex[c >> 4], 1);
		put(w, &hex[c & 15], 1);
	}
	put(w, t.at + from, i - from);
}

static void
put_quoted(struct writer *w, struct log_text t)
{
	PUT(w, "\"");
	if (t.len == 0)
		PUT(w, "-");
	put_escaped(w, t, false);
	PUT(w, "\"");
}

/* "10/Oct/2000:13:55:36 +0000", made once a second. */
static const char *
clf_time(int64_t wall_ms)
{
	static char text[40];
	static int64_t second = -1;
	time_t now = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (now != second) {
		gmtime_r(&now, &tm);
		strftime(text, sizeof(text), "%d/%b/%Y:%H:%M:%S +0000", &tm);
		second = now;
	}
	return text;
}

/* "2026-11-30T10:20:30", made once a second. */
static const char *
iso_time(int64_t wall_ms)
{
	static char text[40];
	static int64_t second = -1;
	time_t now = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (now != second) {
		gmtime_r(&now, &tm);
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
		second = now;
	}
	return text;
}

static void
put_common(struct writer *w, const struct access_log_entry *e)
{
	put_escaped(w, e->client, false);
	PUT(w, " - - [");
	put_text(w, clf_time(e->wall_ms));
	PUT(w, "] \"");
	if (e->method.len == 0) {
		PUT(w, "-");
	} else {
		put_escaped(w, e->method, false);
		PUT(w, " ");
		put_escaped(w, e->target, false);
		PUT(w, " ");
		put_escaped(w, e->version, false);
	}
	PUT(w, "\" ");
	put_number(w, (uint64_t)e->status);
	PUT(w, " ");
	put_number(w, e->bytes_out);
}

static void
put_string(struct writer *w, const char *name, struct log_text t)
{
	if (t.len == 0)
		return;
	PUT(w, ",\"");
	put_text(w, name);
	PUT(w, "\":\"");
	put_escaped(w, t, true);
	PUT(w, "\"");
}

static void
put_integer(struct writer *w, const char *name, int64_t n)
{
	if (n < 0)
		return;
	PUT(w, ",\"");
	put_text(w, name);
	PUT(w, "\":");
	put_number(w, (uint64_t)n);
}

static void
put_json(struct writer *w, const struct access_log_entry *e)
{
	char ms[] = { '.', (char)('0' + e->wall_ms % 1000 / 100),
		(char)('0' + e->wall_ms % 100 / 10),
		(char)('0' + e->wall_ms % 10), 'Z' };

	PUT(w, "{\"time\":\"");
	put_text(w, iso_time(e->wall_ms));
	put(w, ms, sizeof(ms));
	PUT(w, "\"");
	put_string(w, "client", e->client);
	put_string(w, "host", e->host);
	put_string(w, "site", e->site);
	put_string(w, "method", e->method);
	put_string(w, "target", e->target);
	put_string(w, "version", e->version);
	put_integer(w, "status", e->status);
	put_integer(w, "bytes_in", (int64_t)e->bytes_in);
	put_integer(w, "bytes_out", (int64_t)e->bytes_out);
	put_integer(w, "total_us", e->total_us);
	put_integer(w, "queue_us", e->queue_us);
	put_integer(w, "connect_us", e->connect_us);
	put_integer(w, "node_us", e->node_us);
	put_string(w, "node", e->node);
	if (e->attempts > 1)
		put_integer(w, "attempts", e->attempts);
	if (e->why != WHY_NONE)
		put_string(w, "why",
		    (struct log_text){ why_word(e->why),
			strlen(why_word(e->why)) });
	put_string(w, "referer", e->referer);
	put_string(w, "agent", e->agent);
	put_string(w, "request_id", e->request_id);
	put_string(w, "tls", e->tls);
	put_string(w, "cipher", e->cipher);
	PUT(w, "}");
}

size_t
access_log_format(char *out, size_t room, enum snap_log_format format,
    const struct access_log_entry *e)
{
	struct writer w;

	writer_init(&w, out, room);
	switch (format) {
	case SNAP_LOG_OFF:
		return 0;
	case SNAP_LOG_COMMON:
		put_common(&w, e);
		break;
	case SNAP_LOG_COMBINED:
		put_common(&w, e);
		PUT(&w, " ");
		put_quoted(&w, e->referer);
		PUT(&w, " ");
		put_quoted(&w, e->agent);
		break;
	case SNAP_LOG_JSON:
		put_json(&w, e);
		break;
	}
	PUT(&w, "\n");
	return writer_size(&w);
}

struct access_log_entry *
access_log_keep(const struct access_log_entry *from)
{
	struct access_log_entry *to;
	size_t size = sizeof(*to);
	char *at;

	for (size_t i = 0; i < nitems(from->texts); i++)
		size += from->texts[i].len;
	if ((to = malloc(size)) == NULL)
		return NULL;
	*to = *from;
	at = (char *)(to + 1);
	for (size_t i = 0; i < nitems(to->texts); i++) {
		struct log_text *t = &to->texts[i];

		if (t->len > 0)
			memcpy(at, t->at, t->len);
		t->at = at;
		at += t->len;
	}
	return to;
}
