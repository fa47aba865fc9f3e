/*
 * serve.h: an exchange that is answered with a file of its site's home.
 *
 * Whatever is not surely a plain file goes its way to a node as if nobody
 * had looked.
 */
#ifndef MUSTER_STATIC_SERVE_H
#define MUSTER_STATIC_SERVE_H

#include <stdbool.h>

struct engine;
struct exchange;

/* Of a site with static files.  True: the exchange is served, or waits to
 * be (X_FILE); false: nothing happened, it is a node's. */
bool static_take(struct exchange *);

/* X_FILE: something happened; time has passed. */
void static_run(struct exchange *);
void static_sweep(struct exchange *);

/* Why not: the word for X-Muster-Why. */
const char *static_why(const struct exchange *);

/* Gives back what the exchange holds of this; at its end. */
void static_release(struct exchange *);

#endif
