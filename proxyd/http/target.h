/*
 * target.h: what a request asks for: the request target in its three forms,
 * and host names with ports.
 */
#ifndef MUSTER_TARGET_H
#define MUSTER_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/name.h"
#include "proxyd/process/why.h"

struct span {
	uint32_t off, len;
};

/* "/a?b", "http://host/a?b", "*". */
struct target {
	struct span path;      /* what a node is asked for, to the byte */
	struct span authority; /* of the absolute form; len 0: none */
	bool slash;	       /* "/" stands before path ("http://a?b") */
	bool star;	       /* "*": path is empty then */
};

/*
 * Parses base[off, off + len).  WHY_NONE, or the refusal: a byte that no
 * target has, '#', another scheme than http, user data, a path whose ".."
 * (also written %2e) leave the root, "*" for other methods than OPTIONS.
 */
enum why target_parse(struct target *, const char *base, uint32_t off,
    uint32_t len, bool options);

/* Whether a path stays below its root when decoded and its dot segments are
 * taken away.  Ends at '?' or len. */
bool target_stays(const char *path, size_t len);

/*
 * Checks "host", "host:port" or "[v6]:port" and copies the host, lower case,
 * without port and without one trailing dot.  False: no such thing.
 */
bool target_host(const char *text, size_t len, char host[HOST_MAX_LEN + 1],
    uint8_t *host_len);

#endif
