/* cmd_init.c: makes this machine the first master of a new cluster. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/founding.h"
#include "clusterctl/hostaddr.h"
#include "clusterctl/output.h"
#include "clusterctl/passphrase.h"
#include "common/base/io.h"
#include "common/base/secret.h"
#include "common/net/proto.h"

struct init_opts {
	const char *cluster, *name, *address, *passphrase_fd;
	bool passphrase;
};

static const struct opt init_rows[] = {
	{ .name = "cluster",
	    .type = OPT_TEXT,
	    .arg = "NAME",
	    .offset = offsetof(struct init_opts, cluster),
	    .initial = "main",
	    .help = "what the cluster is called" },
	{ .name = "name",
	    .type = OPT_TEXT,
	    .arg = "NODE",
	    .offset = offsetof(struct init_opts, name),
	    .help = "this node's name (else the host name)" },
	{ .name = "address",
	    .type = OPT_TEXT,
	    .arg = "IP[:PORT]",
	    .offset = offsetof(struct init_opts, address),
	    .help = "where the other machines reach it (else guessed)" },
	{ .name = "passphrase",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct init_opts, passphrase),
	    .help = "seal the authority key; asks for a passphrase" },
	{ .name = "passphrase-fd",
	    .type = OPT_TEXT,
	    .arg = "N",
	    .offset = offsetof(struct init_opts, passphrase_fd),
	    .help = "the same; reads it from descriptor N" },
};

static int run_init(struct context *, const void *, int, char **, struct err *);
static int settle(const struct init_opts *, struct founding *,
    char node[NAME_MAX_LEN + 1], struct err *);
static void tell(const struct context *, const struct founding *);
static void tell_next(const struct context *);

const struct command cmd_init = {
	.name = "init",
	.usage = "[options]",
	.summary = "make this machine the first master of a new cluster",
	.about = "Makes the registry, the cluster's authority key, this node's "
		 "identity with the role\nmaster, and the first operator, "
		 "admin, who may do everything.  An init that failed\nor was "
		 "killed can be run again.\n",
	.examples = "  clusterctl init --cluster hosting --address 10.0.0.5\n"
		    "  clusterctl init --passphrase\n",
	.section = SECTION_NODES,
	OPTS_OF(init_rows, struct init_opts),
	.run = run_init,
};

static int
run_init(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct init_opts *o = opts;
	char node[NAME_MAX_LEN + 1], passphrase[PASSPHRASE_SIZE];
	struct founding f;
	struct state st;
	int rv;

	(void)argc;
	(void)argv;
	if (settle(o, &f, node, e) == -1 ||
	    state_create(&st, context_state_dir(cx), e) == -1)
		return -1;
	if (o->passphrase || o->passphrase_fd != NULL) {
		if (passphrase_read(o->passphrase_fd, true, passphrase, e) ==
		    -1)
			return -1;
		f.passphrase = passphrase;
	}
	rv = founding_perform(&st, &f, e);
	secret_wipe(passphrase, sizeof(passphrase));
	if (rv == -1)
		return -1;
	tell(cx, &f);
	if (o->address == NULL)
		output_note("the address was guessed; another one: clusterctl "
			    "node set %s --address IP",
		    f.node);
	return 0;
}

/* Names and address: what was typed, checked, else what the host says. */
static int
settle(const struct init_opts *o, struct founding *f,
    char node[NAME_MAX_LEN + 1], struct err *e)
{
	*f = (struct founding){ .cluster = o->cluster, .node = o->name };
	if (name_check("cluster name", f->cluster, e) == -1)
		return -1;
	if (o->name != NULL && name_check("node name", o->name, e) == -1)
		return -1;
	if (o->name == NULL) {
		if (hostname_guess(node, e) == -1)
			return -1;
		f->node = node;
	}
	if (o->address == NULL)
		return hostaddr_guess(PROTO_DEFAULT_PORT, &f->addr, e);
	return addr_parse(o->address, PROTO_DEFAULT_PORT, &f->addr, e);
}

static void
tell(const struct context *cx, const struct founding *f)
{
	char at[ADDR_TEXT_MAX];

	addr_format(&f->addr, at);
	if (output_is_json()) {
		output_json(json_pack("{s:s,s:s,s:s,s:s,s:b,s:s}", "cluster",
		    f->cluster, "node", f->node, "address", at, "operator",
		    FOUNDING_OPERATOR, "sealed", f->passphrase != NULL, "state",
		    context_state_dir(cx)));
		return;
	}
	printf("Cluster %s: this machine is its first master, %s at %s.\n"
	       "Operator %s may do everything; the keys are in %s.\n",
	    f->cluster, f->node, at, FOUNDING_OPERATOR, context_state_dir(cx));
	if (f->passphrase != NULL)
		puts("The authority key is sealed: after each start of the "
		     "agent, type clusterctl unlock.");
	tell_next(cx);
}

/* The commands as they must be typed here: with --state unless a plain one
 * finds the same place. */
static void
tell_next(const struct context *cx)
{
	const char *dir = context_state_dir(cx);
	bool plain = strcmp(dir, state_dir(NULL)) == 0;
	const char *option = plain ? "" : " --state ",
		   *value = plain ? "" : dir;

	puts("\nNext, start its agent:");
	if (strcmp(dir, STATE_DEFAULT_DIR) == 0 &&
	    access("/run/systemd/system", F_OK) == 0)
		puts("  systemctl enable --now muster-nodeagent");
	else
		printf("  nodeagent%s%s run\n", option, value);
	printf("then, for each machine that shall join:\n"
	       "  clusterctl%s%s enroll --role worker_http\n",
	    option, value);
}
