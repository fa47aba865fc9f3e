/* grant.c: see grant.h. */
#include "common/base/grant.h"

#include <string.h>

#include "common/base/name.h"

int
grant_check(const char *grant, struct err *e)
{
	const char *colon = strchr(grant, ':');
	size_t n = colon != NULL ? (size_t)(colon - grant) : strlen(grant);

	if (strlen(grant) > GRANT_LEN || n == 0)
		goto bad;
	if (strncmp(grant, "*", n) != 0 &&
	    strspn(grant, "abcdefghijklmnopqrstuvwxyz_") != n)
		goto bad;
	return colon != NULL ? name_check_role(colon + 1, e) : 0;
bad:
	return err_set(e, ERR_USAGE,
	    "grant '%.96s' is not valid: a verb or '*', and optionally ':' "
	    "and a role (exec, push:worker_http)",
	    grant);
}
