/*
 * lookup.h: what stands on disk for a path below a site's home, and whether
 * the proxy may serve it.
 *
 * The opener's (opener.h): it may block on the disk.  The kernel keeps the
 * path below the home (openat2); symlinks inside are followed, those that
 * leave it, also absolute ones, are the node's to judge.
 */
#ifndef MUSTER_STATIC_LOOKUP_H
#define MUSTER_STATIC_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/http/coding.h"
#include "proxyd/static/htaccess_cache.h"
#include "proxyd/static/mime.h"

/* What a site says. */
struct lookup_site {
	const char *home, *extensions;
	bool owner_check;
};

struct lookup_ask {
	const char *path; /* as path.h leaves it */
	bool directory;
	struct coding_wish wish;
};

/* X(name, word): what a path is; from NAME on: why it is the node's.  The
 * word stands in X-Muster-Why. */
#define LOOKUP_TABLE(X)                                                \
	X(FILE, "file")	      /* ours */                               \
	X(SLASH, "slash")     /* a directory without its slash */      \
	X(HIDDEN, "hidden")   /* is there, and must not be shown */    \
	X(NAME, "name")	      /* it may be a program, or anything */   \
	X(REQUEST, "request") /* not what a plain file is asked for */ \
	X(MISSING, "missing")                                          \
	X(OUTSIDE, "outside") /* a symlink leaves the home */          \
	X(UNREADABLE, "unreadable")                                    \
	X(KIND, "not_plain") /* a directory, a fifo ... */             \
	X(OWNER, "owner")                                              \
	X(HTACCESS, "htaccess") /* one has a say */                    \
	X(INDEX, "index")	/* another one may be */               \
	X(HOME, "home")		/* cannot be opened */                 \
	X(DISK, "disk")		/* no answer, or not in time */

enum lookup_verdict {
#define X(name, word) LOOKUP_##name,
	LOOKUP_TABLE(X)
#undef X
};

const char *lookup_word(enum lookup_verdict);

struct lookup {
	enum lookup_verdict verdict;
	/* Of LOOKUP_FILE: */
	int fd; /* the caller's; -1 otherwise */
	uint64_t size;
	int64_t modified_s;
	uint32_t modified_ns;
	enum coding coding;
	bool varies;	/* another client may get another coding */
	bool in_memory; /* no disk behind fd */
	const char *type;
};

/* One thread's. */
struct lookup_tools {
	const struct mime *mime;
	struct htaccess_cache *cache;
};

/* Whether this kernel can do it (openat2: Linux 5.6). */
bool lookup_possible(void);

void lookup_path(struct lookup *, const struct lookup_site *,
    const struct lookup_ask *, const struct lookup_tools *);

#endif
