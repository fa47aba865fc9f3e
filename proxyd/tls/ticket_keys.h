/*
 * ticket_keys.h: the keys that session tickets are sealed with.
 *
 * The master makes them and gives them to every worker, and to its successor
 * in an upgrade: a client resumes its session whichever process it meets.
 * They live in memory only.  The newest seals; those before it still open,
 * so that a ticket is good for at least two periods.
 */
#ifndef MUSTER_TICKET_KEYS_H
#define MUSTER_TICKET_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define TICKET_KEYS	  3
#define TICKET_KEY_NAME	  16
#define TICKET_KEY_SECRET 32
#define TICKET_ROTATE_S	  (8 * 3600)
/* Their text: hex, one space between. */
#define TICKET_KEYS_TEXT \
	(TICKET_KEYS * (2 * (TICKET_KEY_NAME + 2 * TICKET_KEY_SECRET) + 1))

struct ticket_key {
	uint8_t name[TICKET_KEY_NAME]; /* stands in the ticket */
	uint8_t cipher[TICKET_KEY_SECRET], mac[TICKET_KEY_SECRET];
};

struct ticket_keys {
	struct ticket_key key[TICKET_KEYS]; /* the newest first */
	unsigned n;
};

/* Adds a new one before the others; the oldest may fall out. */
void ticket_keys_rotate(struct ticket_keys *);

/* The one of this name, or NULL. */
const struct ticket_key *ticket_keys_find(const struct ticket_keys *,
    const uint8_t name[TICKET_KEY_NAME]);

/* For another process; secret. */
void ticket_keys_to_text(const struct ticket_keys *,
    char text[TICKET_KEYS_TEXT]);
int ticket_keys_from_text(struct ticket_keys *, const char *, struct err *);

/* Leaves nothing in memory. */
void ticket_keys_wipe(struct ticket_keys *);

#endif
