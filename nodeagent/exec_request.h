/*
 * exec_request.h: the arguments of the verb exec, checked, as child.h wants
 * them.
 */
#ifndef NODEAGENT_EXEC_REQUEST_H
#define NODEAGENT_EXEC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"
#include "nodeagent/child.h"

/* Strings are borrowed from the JSON, but those of env. */
struct exec_request {
	struct child_spec spec; /* node, roles and order are the caller's */
	struct child_pty pty;
	const char **argv;
	char **env;
	int64_t timeout_ms;
	bool input;
};

/* Fills *r, which is fit for exec_request_fini() also on failure. */
int exec_request_parse(json_t *args, struct exec_request *r, struct err *);
void exec_request_fini(struct exec_request *);

#endif
