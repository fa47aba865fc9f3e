/*
 * twin.h: notices that two machines call with one key, as after a clone of a
 * disk: each run of an agent calls itself by a random word of its own, and a
 * run that is back after another one cannot have ended before it.
 */
#ifndef NODEAGENT_TWIN_H
#define NODEAGENT_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"

#define TWIN_WORD_LEN	 16
#define TWIN_SAY_EACH_MS (60 * INT64_C(60000))

/* What is known of a node; starts zeroed. */
struct twin {
	struct {
		char word[TWIN_WORD_LEN + 1];
		struct addr from;
	} now, before;	 /* the run that called last, and the one before it */
	int64_t said_ms; /* 0: never */
};

/*
 * A node has called.  True when another machine does, too, and it was not
 * said for an hour: *other is where from.
 */
bool twin_called(struct twin *, const char *word, const struct addr *from,
    int64_t now_ms, struct addr *other);

#endif
