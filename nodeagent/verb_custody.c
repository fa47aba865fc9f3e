/*
 * verb_custody.c: the verb custody: keys and chains of sites' certificates,
 * for the other machines that run a proxy.
 *
 * A node's grant says that it might; whether it still has the role is looked
 * up in the registry, since a certificate outlives a change of roles.
 */
#include <string.h>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/custody/custody.h"
#include "common/enroll/issue.h"
#include "nodeagent/agent.h"
#include "nodeagent/fetch.h"
#include "nodeagent/master.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

#define CHUNK (32 * 1024)

static int check_role(struct session *, struct err *);
static int give_all(struct session *, const struct custody *, json_t *files,
    json_t *sizes, struct err *);
static int give(struct session *, const struct custody *, const char *name,
    int64_t *size, struct err *);

int
verb_custody(struct session *s, json_t *args, struct err *e)
{
	struct agent *a = session_agent(s);
	struct custody custody;
	json_t *files, *sizes;
	int rv;

	if (check_role(s, e) == -1 ||
	    json_opt_strings(args, "files", FETCH_FILES, CUSTODY_NAME_MAX - 1,
		&files, e) == -1)
		return -1;
	if (custody_open(&custody, &a->state, e) == -1)
		return -1;
	sizes = json_array();
	rv = give_all(s, &custody, files, sizes, e);
	custody_close(&custody);
	if (rv == 0)
		session_reply(s, json_pack("{s:o}", "sizes", sizes));
	else
		json_decref(sizes);
	return rv;
}

static int
check_role(struct session *s, struct err *e)
{
	const struct cert *peer = session_peer(s);
	struct agent *a = session_agent(s);
	struct node n;

	if (a->master == NULL)
		return err_set(e, ERR_DENIED,
		    "%s does not hold the registry, and gives out no keys",
		    a->view.name);
	if (nodes_get(master_registry(a->master), peer->name, &n, e) == -1)
		return -1;
	if (issue_node_may(&n, "custody"))
		return 0;
	return err_set(e, ERR_DENIED,
	    "%s has neither of the roles master and proxy any more, and gets "
	    "no keys",
	    peer->name);
}

/* As many as fit into one answer; who asks goes on with the rest. */
static int
give_all(struct session *s, const struct custody *custody, json_t *files,
    json_t *sizes, struct err *e)
{
	int64_t size = 0, total = 0;
	json_t *name;
	size_t i;

	json_array_foreach (files, i, name) {
		if (give(s, custody, json_string_value(name), &size, e) == -1)
			return -1;
		if (json_array_append_new(sizes, json_integer(size)) == -1)
			return err_set(e, ERR_LOCAL, "out of memory");
		if ((total += size) > FETCH_SIZE - CUSTODY_SIZE_MAX)
			break;
	}
	return 0;
}

/* -1 for one that is not here, or damaged: the others do not wait until that
 * is mended.  A name that is none is a mistake. */
static int
give(struct session *s, const struct custody *custody, const char *name,
    int64_t *size, struct err *e)
{
	uint8_t hash[CUSTODY_HASH];
	struct custody_bytes b;
	enum custody_kind kind;

	if (!custody_parse(name, &kind, hash))
		return err_set(e, ERR_USAGE, "no file of custody is called so");
	*size = -1;
	if (custody_read(custody, kind, hash, &b, e) == -1) {
		if (e->code != ERR_NO_TARGET)
			log_warn("keys of certificates: %s", e->text);
		return 0;
	}
	*size = (int64_t)b.size;
	for (size_t at = 0; at < b.size; at += CHUNK)
		session_send(s, REC_FILE, b.at + at,
		    b.size - at < CHUNK ? b.size - at : CHUNK);
	custody_wipe(&b);
	return 0;
}
