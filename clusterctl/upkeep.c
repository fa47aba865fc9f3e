/* upkeep.c: see upkeep.h. */
#include "clusterctl/upkeep.h"

#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>

#include "clusterctl/ask.h"
#include "clusterctl/output.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/net/identity.h"
#include "common/registry/roster.h"

static const struct dir_node *next_master(const struct directory *,
    size_t *from);
static int take_piece(const void *, size_t, void *, struct err *);
static int adopt(struct context *, struct roster_intake *, const char *path,
    json_t *reply, bool *news, struct err *);
static int renew_at(struct context *, const struct dir_node *, struct err *);

int
upkeep_fetch_roster(struct context *cx, const struct dir_node *from,
    int64_t have, bool *news, struct err *e)
{
	char path[PATH_MAX];
	struct roster_intake *in;
	json_t *reply = NULL;
	struct ask ask = {
		.request = json_pack("{s:s,s:I}", "verb", "roster", "have",
		    (json_int_t)have),
		.connect_ms = UPKEEP_CONNECT_MS,
		.limit_ms = 60000,
		.file = take_piece,
	};
	int rv = -1;

	state_path(context_state(cx), STATE_ROSTER, path);
	in = roster_intake_new(path, e);
	ask.file_arg = in;
	if (in != NULL && ask_node(cx, from, &ask, &reply, e) == 0)
		rv = adopt(cx, in, path, reply, news, e);
	json_decref(reply);
	json_decref(ask.request);
	roster_intake_free(in);
	return rv;
}

bool
upkeep_roster_due(const struct context *cx)
{
	char path[PATH_MAX];
	struct stat sb;
	int64_t age_s;

	state_path(context_state(cx), STATE_ROSTER, path);
	if (stat(path, &sb) == -1)
		return false;
	age_s = clock_wall_ms() / 1000 - sb.st_mtime;
	return age_s > UPKEEP_ROSTER_S || age_s < 0;
}

bool
upkeep_roster(struct context *cx, int64_t have)
{
	const struct dir_node *master;
	struct err e = { .code = ERR_NONE };
	bool news = false;
	size_t at = 0;

	while ((master = next_master(context_directory(cx), &at)) != NULL)
		if (upkeep_fetch_roster(cx, master, have, &news, &e) == 0)
			return news;
	if (e.code != ERR_NONE)
		output_note("no master told the present roster (%s); going "
			    "on with the copy at hand, revision %lld",
		    e.text, (long long)have);
	return false;
}

bool
upkeep_certificate_due(const struct cert *c, int64_t now_s)
{
	int64_t life = c->not_after_s - c->not_before_s;

	return now_s >= c->not_before_s + life / 3 * 2;
}

void
upkeep_certificate(struct context *cx)
{
	const struct dir_node *master;
	struct err e = { .code = ERR_NONE };
	size_t at = 0;

	while ((master = next_master(context_directory(cx), &at)) != NULL)
		if (renew_at(cx, master, &e) == 0)
			return;
	log_info("the operator certificate was not renewed yet: %s", e.text);
}

static const struct dir_node *
next_master(const struct directory *d, size_t *from)
{
	const struct dir_node *n;

	while ((n = directory_at(d, *from)) != NULL) {
		++*from;
		if (n->has_agent && directory_node_has_role(n, ROLE_MASTER))
			return n;
	}
	return NULL;
}

static int
take_piece(const void *bytes, size_t size, void *arg, struct err *e)
{
	return roster_intake_add(arg, bytes, size, e);
}

static int
adopt(struct context *cx, struct roster_intake *in, const char *path,
    json_t *reply, bool *news, struct err *e)
{
	bool same;

	if (json_opt_bool(reply, "same", false, &same, e) == -1)
		return -1;
	*news = false;
	if (!same &&
	    roster_intake_adopt(in, context_identity(cx)->authority, NULL, news,
		e) == -1)
		return -1;
	/* Its age is that of the last answer, also when nothing is new. */
	utimensat(AT_FDCWD, path, NULL, 0);
	return 0;
}

static int
renew_at(struct context *cx, const struct dir_node *master, struct err *e)
{
	struct ask ask = {
		.request = json_pack("{s:s}", "verb", "renew"),
		.connect_ms = UPKEEP_CONNECT_MS,
	};
	json_t *reply = NULL;
	uint8_t cert[CERT_MAX];
	const char *text;
	size_t size;
	int rv = -1;

	if (ask_node(cx, master, &ask, &reply, e) == -1 ||
	    json_get_string(reply, "cert", 2 * CERT_MAX, &text, e) == -1)
		goto out;
	if (sodium_base642bin(cert, sizeof(cert), text, strlen(text), NULL,
		&size, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		err_set(e, ERR_PROTOCOL, "a certificate that is no base64");
	else
		rv = identity_store(context_state(cx), CERT_OPERATOR, NULL,
		    cert, size, e);
out:
	json_decref(reply);
	json_decref(ask.request);
	return rv;
}
