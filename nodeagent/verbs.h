/*
 * verbs.h: what can be asked of an agent: THE table.  Whoever may call what
 * is decided here and nowhere else; what no row allows is refused.
 */
#ifndef NODEAGENT_VERBS_H
#define NODEAGENT_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"
#include "common/net/cert.h"

struct session;
struct view;

enum caller { BY_JOINER = 1, BY_NODE = 2, BY_OPERATOR = 4 };

/* In place of a grant: the certificate alone is enough. */
#define ANY_CERTIFICATE "-"
/* And for a joiner, who has none: the token's secret was proven. */
#define ANY_TOKEN "+"

#define VERB_GRANTS_MAX 2

struct verb {
	const char *name;
	/* Answers at once, or starts a task (session.h).  -1: refused with
	 * the err. */
	int (*start)(struct session *, json_t *args, struct err *);
	unsigned callers;		     /* enum caller, or'ed */
	const char *grants[VERB_GRANTS_MAX]; /* one of them is enough */
	bool audited;
};

extern const struct verb verbs_table[];
extern const size_t verbs_count;

/* NULL: unknown. */
const struct verb *verbs_find(const char *name);

/*
 * Whether a peer (NULL: one that joins) may call the verb here and now: this
 * node is in the cluster, the peer's certificate is in time and not revoked,
 * the row names its kind, and one of its grants covers this node.
 */
int verbs_allow(const struct verb *, const struct cert *peer,
    const struct view *, int64_t now_s, struct err *);

/* The part of that which holds for any verb: removed, expired, revoked. */
int verbs_check_peer(const struct cert *peer, const struct view *,
    int64_t now_s, struct err *);

/* The handlers, by the file that has them. */
typedef int verb_start(struct session *, json_t *args, struct err *);
verb_start verb_ping, verb_status;	     /* verb_status.c */
verb_start verb_exec;			     /* verb_exec.c */
verb_start verb_have, verb_push, verb_pull;  /* verb_files.c */
verb_start verb_roster, verb_sync;	     /* verb_roster.c */
verb_start verb_join, verb_renew, verb_seen; /* verb_master.c */
verb_start verb_custody;		     /* verb_custody.c */
verb_start verb_proxy;			     /* verb_proxy.c */

#endif
