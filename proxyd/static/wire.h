/*
 * wire.h: what a worker and its opener say to each other: one message a
 * packet, at most one descriptor with it, over the opener's socket.  Both
 * ends are the same program.
 */
#ifndef MUSTER_STATIC_WIRE_H
#define MUSTER_STATIC_WIRE_H

#include <sys/uio.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/name.h"
#include "proxyd/static/conditional.h"
#include "proxyd/static/lookup.h"
#include "proxyd/static/path.h"

#define WIRE_CONTENT_MAX (16U << 10) /* a file that comes with its answer */
#define WIRE_FIELDS_MAX	 1024

enum wire_kind {
	WIRE_START,    /* text: the account to run as */
	WIRE_SNAPSHOT, /* with the image; ticket: later ones have higher */
	WIRE_LOOKUP,   /* text: site, NUL, path */
	WIRE_WARM,     /* with the file: have these bytes in memory */
	WIRE_KINDS
};

struct wire_ask {
	uint32_t kind;
	uint8_t directory, wish[2];
	uint64_t ticket; /* comes back with the answer */
	uint64_t files_key;
	uint64_t offset, size; /* of WIRE_WARM */
};

#define WIRE_TEXT_MAX (HOST_MAX_LEN + 1 + FILE_PATH_MAX + 1)

/*
 * Behind it stand the fields, in the order that heads want them: the type
 * (type_size bytes), what else is about the body (up to body_size), and what
 * a 304 keeps too (up to fields_size); then the content.  A file that is too
 * large for that comes with its descriptor.
 */
struct wire_answer {
	uint64_t ticket;
	uint32_t verdict; /* enum lookup_verdict */
	bool known;	  /* false: not of a snapshot that the opener has */
	bool in_memory;	  /* the descriptor's bytes: no disk has to be read */
	uint32_t type_size, body_size, fields_size;
	uint32_t content_size; /* 0, or the whole file */
	uint64_t size;
	struct validators validators;
};

/* 0 or -1 (errno).  A descriptor is not taken; -1: none. */
int wire_send(int socket, const struct iovec *, int n, int fd);

/* Bytes, 0 at the end, -1 (errno).  *fd is the caller's; -1: none came. */
ssize_t wire_recv(int socket, const struct iovec *, int n, int *fd);

#endif
