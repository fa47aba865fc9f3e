/* verbs.c: see verbs.h. */
#include "nodeagent/verbs.h"

#include <string.h>

#include "common/base/io.h"
#include "nodeagent/view.h"

/* clang-format off */
const struct verb verbs_table[] = {
	{ "join",   verb_join,   BY_JOINER,             { ANY_TOKEN },       false },
	{ "ping",   verb_ping,   BY_NODE | BY_OPERATOR, { ANY_CERTIFICATE }, false },
	{ "status", verb_status, BY_OPERATOR,           { "status" },        false },
	{ "exec",   verb_exec,   BY_OPERATOR,           { "exec" },          true  },
	{ "have",   verb_have,   BY_OPERATOR,           { "push", "pull" },  false },
	{ "push",   verb_push,   BY_OPERATOR,           { "push" },          true  },
	{ "pull",   verb_pull,   BY_OPERATOR,           { "pull" },          true  },
	{ "roster", verb_roster, BY_NODE | BY_OPERATOR, { ANY_CERTIFICATE }, false },
	{ "sync",   verb_sync,   BY_NODE | BY_OPERATOR, { "sync" },          false },
	{ "renew",  verb_renew,  BY_NODE | BY_OPERATOR, { ANY_CERTIFICATE }, true  },
	{ "seen",   verb_seen,   BY_OPERATOR,           { "status" },        false },
	{ "custody", verb_custody, BY_NODE,             { "custody" },       true  },
	{ "proxy",  verb_proxy,  BY_OPERATOR,           { "status" },        false },
};
/* clang-format on */
const size_t verbs_count = nitems(verbs_table);

static int check_grants(const struct verb *, const struct cert *,
    const struct view *, struct err *);

const struct verb *
verbs_find(const char *name)
{
	for (size_t i = 0; i < verbs_count; i++)
		if (strcmp(verbs_table[i].name, name) == 0)
			return &verbs_table[i];
	return NULL;
}

int
verbs_allow(const struct verb *v, const struct cert *peer,
    const struct view *view, int64_t now_s, struct err *e)
{
	if (peer == NULL) {
		if ((v->callers & BY_JOINER) != 0 && v->grants[0] != NULL &&
		    strcmp(v->grants[0], ANY_TOKEN) == 0)
			return 0;
		return err_set(e, ERR_DENIED,
		    "%s needs a certificate of the cluster; a token can only "
		    "join",
		    v->name);
	}
	if (verbs_check_peer(peer, view, now_s, e) == -1)
		return -1;
	if ((v->callers & (peer->kind == CERT_NODE ? BY_NODE : BY_OPERATOR)) ==
	    0)
		return err_set(e, ERR_DENIED, "%s %s may not call %s",
		    peer->kind == CERT_NODE ? "node" : "operator", peer->name,
		    v->name);
	return check_grants(v, peer, view, e);
}

int
verbs_check_peer(const struct cert *peer, const struct view *view,
    int64_t now_s, struct err *e)
{
	if (!view->enrolled)
		return err_set(e, ERR_REVOKED,
		    "%s was removed from the cluster and takes no orders",
		    view->name);
	if (view_is_revoked(view, peer->serial))
		return err_set(e, ERR_REVOKED,
		    "the certificate of %s is revoked", peer->name);
	return cert_check_time(peer, now_s, e);
}

static int
check_grants(const struct verb *v, const struct cert *peer,
    const struct view *view, struct err *e)
{
	for (size_t i = 0; i < VERB_GRANTS_MAX && v->grants[i] != NULL; i++)
		if (strcmp(v->grants[i], ANY_CERTIFICATE) == 0 ||
		    view_grants(view, peer, v->grants[i]))
			return 0;
	return err_set(e, ERR_DENIED,
	    "%s has no grant for %s on this node (roles: %s)", peer->name,
	    v->grants[0] != NULL ? v->grants[0] : v->name,
	    view->roles[0] != '\0' ? view->roles : "none");
}
