/*
 * files.h: the static files a worker knows: what its opener said of each
 * path, kept for less than a second, with the small ones whole in memory and
 * the large ones open.
 *
 * So a path that is asked for often costs one question to the disk in half
 * a second, and a change is seen within one.  Bounded: the least recently
 * used goes.
 */
#ifndef MUSTER_FILES_H
#define MUSTER_FILES_H

#include <sys/queue.h>

#include "proxyd/process/snapshot.h"
#include "proxyd/static/opener_link.h"

#define FILES_MAX      1024 /* entries, and descriptors at most */
#define FILES_FRESH_MS 500
#define FILES_IDLE_MS  5000 /* unused for so long: closed */

/* Immutable once known, and good while held, whatever happens on disk. */
struct file {
	unsigned refs;
	enum lookup_verdict verdict;
	int fd;		     /* -1: content is all of it */
	bool in_memory;	     /* what fd has */
	const char *content; /* NULL: in fd */
	uint64_t size;
	struct validators validators;
	const char *fields; /* wire.h has their order */
	uint32_t type_size, body_size, fields_size;
};

struct files_ask {
	const struct snapshot *snap;
	const struct snap_site *site;
	const struct file_path *path;
	struct coding_wish wish;
};

/* Embedded in who waits.  done gets a file held for it, or NULL. */
struct files_waiter {
	LIST_ENTRY(files_waiter) link;
	void (*done)(struct files_waiter *, struct file *);
	bool waits;
};

enum files_result {
	FILES_KNOWN, /* *file is held for the caller */
	FILES_WAIT,  /* done comes, but not from inside this call */
	FILES_NONE,  /* not now: no opener, no memory, a disk that hangs */
};

struct files;

/* Without an opener, which comes later: opener_link.h. */
struct files *files_new(struct event_base *, struct err *);
void files_free(struct files *);

/* For jobs of other kinds; see opener_link.h. */
struct opener_link *files_opener(struct files *);

enum files_result files_find(struct files *, const struct files_ask *,
    int64_t now_ms, struct files_waiter *, struct file **);
void files_forget(struct files_waiter *);
void file_release(struct file *);

#endif
