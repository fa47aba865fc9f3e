/*
 * control.h: the local socket of a running agent, run/nodeagent.sock: one
 * JSON object a line, from root or the agent's own user.
 *
 *   {"do":"status"}                      what `nodeagent status` shows
 *   {"do":"reload"}                      asks the masters for a roster now
 *   {"do":"unlock","passphrase":"..."}   opens the authority key (masters)
 *
 * Each is answered by one line: an object with what was asked for, or
 * {"code","word","text"} as in an ERROR record.
 */
#ifndef NODEAGENT_CONTROL_H
#define NODEAGENT_CONTROL_H

#include "common/base/err.h"

#define CONTROL_SOCKET	 "nodeagent.sock"
#define CONTROL_LINE_MAX 8192

struct agent;
struct control;
struct options;

struct control *control_new(struct agent *, const char *run_dir, struct err *);
void control_free(struct control *); /* removes the socket */

/* `nodeagent status`. */
int control_status(const struct options *, struct err *);

#endif
