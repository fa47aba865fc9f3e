/* answer.c: see answer.h. */
#include "proxyd/static/answer.h"

#include <stdio.h>
#include <string.h>

#include "proxyd/http/reply.h"
#include "proxyd/http/writer.h"

static void write_whole(struct answer *, const struct answer_ask *);
static void write_part(struct answer *, const struct answer_ask *);
static void write_parts(struct answer *, const struct answer_ask *);
static void write_empty(struct answer *, const struct answer_ask *,
    uint16_t status);
static void write_unchanged(struct answer *, const struct answer_ask *);
static void put_part_head(struct writer *, const struct answer *,
    const struct range *);

void
answer_file(struct answer *a, const struct file *file,
    const struct answer_ask *ask)
{
	const struct member *range = &ask->asked->fields[ASKED_RANGE];
	enum precondition p =
	    precondition(ask->asked, &file->validators, ask->now_s);
	enum range_result r = RANGE_WHOLE;

	a->file = file;
	a->set.n = a->at = 0;
	a->part = (struct range){ 0, 0 };
	if (p == PRECONDITION_FAILED) {
		write_empty(a, ask, 412);
		return;
	}
	if (p == PRECONDITION_UNCHANGED) {
		write_unchanged(a, ask);
		return;
	}
	/* Range is defined for GET alone (section 14.2). */
	if (range->text != NULL && p == PRECONDITION_NONE && !ask->head)
		r = range_parse(range->text, range->len, file->size, &a->set);
	if (r == RANGE_UNSATISFIABLE)
		write_empty(a, ask, 416);
	else if (r == RANGE_WHOLE)
		write_whole(a, ask);
	else if (a->set.n == 1)
		write_part(a, ask);
	else
		write_parts(a, ask);
}

static void
begin(struct answer *a, struct writer *w, const struct answer_ask *ask,
    uint16_t status)
{
	a->status = status;
	writer_init(w, a->room, sizeof(a->room));
	PUT(w, "HTTP/1.1 ");
	put_number(w, status);
	PUT(w, " ");
	put_text(w, reply_reason(status));
	PUT(w, "\r\nDate: ");
	put_text(w, ask->date);
	PUT(w, "\r\n");
}

static void
put_length(struct writer *w, uint64_t size)
{
	PUT(w, "Content-Length: ");
	put_number(w, size);
	PUT(w, "\r\n");
}

static void
end(struct answer *a, struct writer *w, const struct answer_ask *ask)
{
	if (ask->connection == ANSWER_CLOSE)
		PUT(w, "Connection: close\r\n");
	else if (ask->connection == ANSWER_PERSIST_10)
		PUT(w, "Connection: keep-alive\r\n");
	put_text(w, ask->extra);
	PUT(w, "\r\n");
	a->text = a->room;
	a->text_size = writer_size(w);
}

static void
write_whole(struct answer *a, const struct answer_ask *ask)
{
	struct writer w;

	a->set.n = 0;
	begin(a, &w, ask, 200);
	put(&w, a->file->fields, a->file->fields_size);
	put_length(&w, a->file->size);
	end(a, &w, ask);
	if (!ask->head)
		a->part = (struct range){ 0, a->file->size };
}

/* "bytes 0-3/10" */
static void
put_content_range(struct writer *w, const struct range *r, uint64_t size)
{
	PUT(w, "Content-Range: bytes ");
	put_number(w, r->first);
	PUT(w, "-");
	put_number(w, r->first + r->size - 1);
	PUT(w, "/");
	put_number(w, size);
	PUT(w, "\r\n");
}

static void
write_part(struct answer *a, const struct answer_ask *ask)
{
	struct writer w;

	a->part = a->set.parts[0];
	a->set.n = 0;
	begin(a, &w, ask, 206);
	put(&w, a->file->fields, a->file->fields_size);
	put_content_range(&w, &a->part, a->file->size);
	put_length(&w, a->part.size);
	end(a, &w, ask);
}

/* multipart/byteranges; its length is known before. */
static void
write_parts(struct answer *a, const struct answer_ask *ask)
{
	const struct file *f = a->file;
	struct writer w;
	uint64_t size = 0;

	snprintf(a->boundary, sizeof(a->boundary), "%016llx",
	    (unsigned long long)ask->random);
	for (unsigned i = 0; i < a->set.n; i++) {
		writer_init(&w, a->room, sizeof(a->room));
		put_part_head(&w, a, &a->set.parts[i]);
		size += writer_size(&w) + a->set.parts[i].size;
	}
	size +=
	    sizeof("\r\n--") - 1 + strlen(a->boundary) + sizeof("--\r\n") - 1;
	begin(a, &w, ask, 206);
	PUT(&w, "Content-Type: multipart/byteranges; boundary=");
	put_text(&w, a->boundary);
	PUT(&w, "\r\n");
	put(&w, f->fields + f->type_size, f->fields_size - f->type_size);
	put_length(&w, size);
	end(a, &w, ask);
	put_part_head(&w, a, &a->set.parts[0]);
	a->text_size = writer_size(&w);
	a->part = a->set.parts[0];
}

static void
put_part_head(struct writer *w, const struct answer *a, const struct range *r)
{
	PUT(w, "\r\n--");
	put_text(w, a->boundary);
	PUT(w, "\r\n");
	put(w, a->file->fields, a->file->type_size);
	put_content_range(w, r, a->file->size);
	PUT(w, "\r\n");
}

/* Without what is about a body that does not come (section 15.4.5). */
static void
write_unchanged(struct answer *a, const struct answer_ask *ask)
{
	const struct file *f = a->file;
	struct writer w;

	begin(a, &w, ask, 304);
	put(&w, f->fields + f->body_size, f->fields_size - f->body_size);
	end(a, &w, ask);
}

static void
write_empty(struct answer *a, const struct answer_ask *ask, uint16_t status)
{
	struct writer w;

	begin(a, &w, ask, status);
	if (status == 416) {
		PUT(&w, "Content-Range: bytes */");
		put_number(&w, a->file->size);
		PUT(&w, "\r\n");
	}
	put_length(&w, 0);
	end(a, &w, ask);
}

/* Only a path: a Host that nobody checked must not become a link. */
void
answer_redirect(struct answer *a, const char *path, size_t len,
    const struct answer_ask *ask)
{
	const char *query = memchr(path, '?', len);
	size_t before = query != NULL ? (size_t)(query - path) : len;
	struct writer w;

	a->set.n = a->at = 0;
	a->part = (struct range){ 0, 0 };
	begin(a, &w, ask, 301);
	PUT(&w, "Location: ");
	put(&w, path, before);
	PUT(&w, "/");
	put(&w, path + before, len - before);
	PUT(&w, "\r\n");
	put_length(&w, 0);
	end(a, &w, ask);
}

bool
answer_has_next(const struct answer *a)
{
	return a->at < a->set.n;
}

bool
answer_next(struct answer *a)
{
	struct writer w;

	if (!answer_has_next(a))
		return false;
	writer_init(&w, a->room, sizeof(a->room));
	if (++a->at < a->set.n) {
		a->part = a->set.parts[a->at];
		put_part_head(&w, a, &a->part);
	} else {
		a->part = (struct range){ 0, 0 };
		PUT(&w, "\r\n--");
		put_text(&w, a->boundary);
		PUT(&w, "--\r\n");
	}
	a->text = a->room;
	a->text_size = writer_size(&w);
	return true;
}
