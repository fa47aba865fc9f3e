/* ports.c: see ports.h. */
#include "clusterctl/ports.h"

#include <stdio.h>
#include <string.h>

#include "common/base/name.h"
#include "common/base/text.h"
#include "common/registry/nodes.h"

static int apply(struct registry *, const char *node, const char *text,
    struct err *);

int
ports_apply(struct registry *r, const char *node, const struct opt_list *ports,
    struct err *e)
{
	for (size_t i = 0; i < ports->n; i++)
		if (apply(r, node, ports->v[i], e) == -1)
			return -1;
	return 0;
}

static int
apply(struct registry *r, const char *node, const char *text, struct err *e)
{
	const char *eq = strchr(text, '=');
	char role[NAME_MAX_LEN + 1];
	uint64_t port = 0;

	if (eq == NULL || eq == text || (size_t)(eq - text) >= sizeof(role))
		return err_set(e, ERR_USAGE,
		    "--port '%.80s' is not ROLE=PORT, like worker_http=8080",
		    text);
	snprintf(role, sizeof(role), "%.*s", (int)(eq - text), text);
	if (strcmp(eq + 1, "role") != 0 &&
	    text_parse_u64("port", eq + 1, 1, 65535, &port, e) == -1)
		return -1;
	return nodes_set_port(r, node, role, (uint16_t)port, e);
}
