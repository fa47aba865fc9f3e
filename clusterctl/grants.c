/* grants.c: see grants.h. */
#include "clusterctl/grants.h"

#include <stdio.h>
#include <string.h>

#include "common/base/grant.h"
#include "common/base/io.h"
#include "common/base/name.h"
#include "common/registry/roles.h"

/* The grants that the verbs of the service protocol ask for
 * (muster-proto(7)). */
static const char *const verbs[] = { "exec", "push", "pull", "status", "sync",
	"*" };

static int check(struct registry *, const char *grant, struct err *);
static int check_verb(const char *verb, struct err *);

int
grants_check(struct registry *r, const struct opt_list *grants, struct err *e)
{
	for (size_t i = 0; i < grants->n; i++)
		if (check(r, grants->v[i], e) == -1)
			return -1;
	return 0;
}

static int
check(struct registry *r, const char *grant, struct err *e)
{
	char verb[GRANT_LEN + 1];
	struct role role;

	if (grant_check(grant, e) == -1)
		return -1;
	snprintf(verb, sizeof(verb), "%.*s", (int)strcspn(grant, ":"), grant);
	if (check_verb(verb, e) == -1)
		return -1;
	if (strlen(verb) == strlen(grant))
		return 0;
	return roles_get(r, grant + strlen(verb) + 1, &role, e);
}

static int
check_verb(const char *verb, struct err *e)
{
	const char *near;

	for (size_t i = 0; i < nitems(verbs); i++)
		if (strcmp(verbs[i], verb) == 0)
			return 0;
	near = name_suggest(verb, verbs, nitems(verbs) - 1);
	return err_set(e, ERR_USAGE,
	    "there is no verb '%.40s' to grant%s%s%s (exec, push, pull, "
	    "status, sync, or * for all)",
	    verb, near != NULL ? "; did you mean " : "",
	    near != NULL ? near : "", near != NULL ? "?" : "");
}
