/*
 * answer.h: what a request for a file is answered: the head, the parts of
 * the file behind it, the text between them.
 *
 * Nothing but text is made here; serve.c sends.
 */
#ifndef MUSTER_STATIC_ANSWER_H
#define MUSTER_STATIC_ANSWER_H

#include "proxyd/static/asked.h"
#include "proxyd/static/files.h"
#include "proxyd/static/range.h"

#define ANSWER_TEXT_MAX 4096

enum answer_connection {
	ANSWER_PERSIST,	   /* the default of HTTP/1.1: not said */
	ANSWER_PERSIST_10, /* must be said to HTTP/1.0 */
	ANSWER_CLOSE
};

struct answer_ask {
	const struct asked *asked;
	bool head; /* HEAD: no body goes out */
	enum answer_connection connection;
	const char *date;  /* for the Date field, of now_s */
	int64_t now_s;	   /* wall time */
	uint64_t random;   /* for the boundary between parts */
	const char *extra; /* whole field lines, or "" */
};

/* Text, then a part of the file, as often as answer_next() says. */
struct answer {
	uint16_t status;
	const char *text; /* in room; its size 0: no room for it */
	size_t text_size;
	struct range part; /* size 0: none */
	/* Its own: */
	const struct file *file;
	struct range_set set;
	unsigned at;
	char boundary[20];
	char room[ANSWER_TEXT_MAX];
};

/* The first text and part.  The file is borrowed. */
void answer_file(struct answer *, const struct file *,
    const struct answer_ask *);

/* To a path with the slash it lacks: path[0, len) with its query. */
void answer_redirect(struct answer *, const char *path, size_t len,
    const struct answer_ask *);

/* What comes next; false: that was all. */
bool answer_next(struct answer *);
bool answer_has_next(const struct answer *);

#endif
