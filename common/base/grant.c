/* grant.c: see grant.h. */
#include "common/base/grant.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/name.h"

#define VERB_MAX_LEN 24

static bool verb_valid(const char *verb, size_t len);

int
grant_check(const char *grant, struct err *e)
{
	size_t len = strcspn(grant, ":");

	if (!verb_valid(grant, len) || strlen(grant) > GRANT_LEN)
		return err_set(e, ERR_USAGE,
		    "grant '%.64s' is not valid: a verb such as exec, or *, "
		    "and optionally ':' and a role",
		    grant);
	if (grant[len] == ':' && name_check_role(grant + len + 1, e) == -1)
		return err_wrap(e, "grant '%.64s'", grant);
	return 0;
}

static bool
verb_valid(const char *verb, size_t len)
{
	if (len == 1 && verb[0] == '*')
		return true;
	return len > 0 && len <= VERB_MAX_LEN && verb[0] != '_' &&
	    strspn(verb, "abcdefghijklmnopqrstuvwxyz_") >= len;
}
