/* cmd_operator_join.c: makes this machine's user an operator. */
#include "clusterctl/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "clusterctl/admission.h"
#include "clusterctl/output.h"
#include "clusterctl/upkeep.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/secret.h"
#include "common/net/authority.h"
#include "common/net/identity.h"

struct join_opts {
	bool replace;
};

static const struct opt join_rows[] = {
	{ .name = "replace",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct join_opts, replace),
	    .help = "give up the operator's identity that is there" },
};

static int run_join(struct context *, const void *, int, char **, struct err *);
static int read_token(char *arg, struct token *, struct err *);
static int join(struct context *, const struct state *, const struct token *,
    struct err *);
static int check_unused(const struct state *, struct err *);
static int give_up(const struct state *, struct err *);
static int check_authority(const struct state *, const uint8_t *, struct err *);
static int fetch_roster(struct context *, const struct token *,
    const struct addr *, struct err *);
static void tell(const struct context *, const struct cert *);

const struct command cmd_operator_join = {
	.name = "operator join",
	.usage = "TOKEN",
	.summary = "become an operator on this machine, by a printed token",
	.about = "The key is made here and never leaves.  Without root, choose "
		 "a place of your own:\nexport MUSTER_STATE=~/.muster.  With "
		 "TOKEN - it is read from stdin.\n",
	.section = SECTION_REGISTRY,
	OPTS_OF(join_rows, struct join_opts),
	.min_args = 1,
	.max_args = 1,
	.run = run_join,
};

static int
run_join(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct join_opts *o = opts;
	struct state st;
	struct token t;
	int rv = -1;

	(void)argc;
	if (read_token(argv[0], &t, e) == 0 &&
	    state_create(&st, context_state_dir(cx), e) == 0 &&
	    (o->replace ? give_up(&st, e) : check_unused(&st, e)) == 0)
		rv = join(cx, &st, &t, e);
	sodium_memzero(&t, sizeof(t));
	return rv;
}

/* ps shall not show the secret any longer than it must. */
static int
read_token(char *arg, struct token *t, struct err *e)
{
	char text[TOKEN_TEXT_MAX];
	int rv = 0;

	if (strcmp(arg, "-") == 0)
		rv = secret_read_line(STDIN_FILENO, "", text, sizeof(text), e);
	else if (strlen(arg) >= sizeof(text))
		rv = err_set(e, ERR_USAGE, "that is no token: it is too long");
	else {
		memcpy(text, arg, strlen(arg) + 1);
		secret_scrub_arg(arg);
	}
	if (rv == 0)
		rv = token_decode(text, t, e);
	sodium_memzero(text, sizeof(text));
	if (rv == 0 && t->kind != CERT_OPERATOR)
		rv = err_set(e, ERR_USAGE,
		    "this token is for a node: nodeagent join takes it");
	return rv;
}

static int
check_unused(const struct state *st, struct err *e)
{
	if (!state_has(st, STATE_OPERATOR_CERT))
		return 0;
	return err_set(e, ERR_CONFLICT,
	    "%s has an operator's identity already (choose another place with "
	    "--state, or give that one up with --replace)",
	    st->dir);
}

/* The key goes too, since others may have it; and first, because the
 * certificate is worth nothing without it. */
static int
give_up(const struct state *st, struct err *e)
{
	static const enum state_file files[] = { STATE_OPERATOR_KEY,
		STATE_OPERATOR_CERT };
	char path[PATH_MAX];

	for (size_t i = 0; i < nitems(files); i++)
		if (unlink(state_path(st, files[i], path)) == -1 &&
		    errno != ENOENT)
			return err_errno(e, ERR_LOCAL, "cannot remove %s",
			    path);
	return 0;
}

static int
join(struct context *cx, const struct state *st, const struct token *t,
    struct err *e)
{
	struct channel_identity id;
	struct admission a;
	int rv = -1;

	/* The key is on disk first: the same token finishes a join that broke
	 * off after the master's yes. */
	if (identity_key(st, CERT_OPERATOR, &id, e) == 0 &&
	    admission_ask(cx, t, &id, &a, e) == 0 &&
	    check_authority(st, a.authority, e) == 0 &&
	    identity_store(st, CERT_OPERATOR, a.authority, a.cert, a.cert_size,
		e) == 0 &&
	    fetch_roster(cx, t, &a.master, e) == 0)
		rv = 0;
	identity_wipe(&id);
	if (rv == 0)
		tell(cx, &a.holder);
	return rv;
}

/* On a node the operator must be of the node's cluster. */
static int
check_authority(const struct state *st, const uint8_t *theirs, struct err *e)
{
	uint8_t ours[KEY_SIZE];

	if (!state_has(st, STATE_AUTHORITY_PUB))
		return 0;
	if (authority_load_public(st, ours, e) == -1)
		return -1;
	if (memcmp(ours, theirs, sizeof(ours)) == 0)
		return 0;
	return err_set(e, ERR_CONFLICT,
	    "%s belongs to another cluster (choose another place with "
	    "--state)",
	    st->dir);
}

/* On a node its agent keeps the roster. */
static int
fetch_roster(struct context *cx, const struct token *t, const struct addr *at,
    struct err *e)
{
	char name[] = "master";
	struct dir_node master = { .name = name,
		.addr = *at,
		.has_agent = true };
	bool news;

	memcpy(master.key, t->master_key, sizeof(master.key));
	if (context_need(cx, NEEDS_OPERATOR, e) == -1)
		return -1;
	if (state_has(context_state(cx), STATE_ROSTER))
		return 0;
	return upkeep_fetch_roster(cx, &master, 0, &news, e);
}

static void
tell(const struct context *cx, const struct cert *c)
{
	char until[32];

	clock_format_utc(c->not_after_s * 1000, until, sizeof(until));
	if (output_is_json()) {
		json_t *grants = json_array();

		for (size_t i = 0; i < c->n_grants; i++)
			json_array_append_new(grants,
			    json_string(c->grants[i]));
		output_json(json_pack("{s:s,s:o,s:s,s:s}", "operator", c->name,
		    "grants", grants, "certificate_until", until, "state",
		    context_state_dir(cx)));
		return;
	}
	printf("You are operator %s; you may", c->name);
	for (size_t i = 0; i < c->n_grants; i++)
		printf("%s %s", i > 0 ? "," : "", c->grants[i]);
	printf(".\nThe certificate renews itself while the grants hold.\n\n"
	       "Next: clusterctl nodes\n");
}
