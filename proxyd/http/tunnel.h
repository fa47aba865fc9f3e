/*
 * tunnel.h: what an upgraded connection becomes: bytes both ways, no HTTP.
 *
 * A tunnel may live for days and there may be tens of thousands, so it is
 * small and keeps nothing alive: no buffer while nothing waits to be
 * written, no snapshot (its rows in the scoreboard stand through reloads), no
 * request, only the texts of its line in the access log, where there is one.
 */
#ifndef MUSTER_TUNNEL_H
#define MUSTER_TUNNEL_H

#include <stddef.h>

#include "proxyd/process/why.h"

struct exchange;
struct tunnel;

/*
 * Takes client, node and places over from an exchange whose node agreed.
 * head is our 101; what either side sent behind its head follows.  The
 * exchange is over then.  -1: no memory; nothing has changed.
 */
int tunnel_open(struct exchange *, const char *head, size_t size);

/* Moves what can be moved. */
void tunnel_run(struct tunnel *);

/* Time has passed. */
void tunnel_sweep(struct tunnel *);

/* Resets both sides. */
void tunnel_cut(struct tunnel *, enum why);

#endif
