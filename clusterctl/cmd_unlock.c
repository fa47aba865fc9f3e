/* cmd_unlock.c: hands the passphrase of the authority key to the agent. */
#include "clusterctl/command.h"

#include "clusterctl/localagent.h"
#include "clusterctl/passphrase.h"
#include "clusterctl/report.h"
#include "common/base/io.h"
#include "common/base/secret.h"

struct unlock_opts {
	const char *passphrase_fd;
};

static const struct opt unlock_rows[] = {
	{ .name = "passphrase-fd",
	    .type = OPT_TEXT,
	    .arg = "N",
	    .offset = offsetof(struct unlock_opts, passphrase_fd),
	    .help = "read it from descriptor N, not from the terminal" },
};

static int run_unlock(struct context *, const void *, int, char **,
    struct err *);

const struct command cmd_unlock = {
	.name = "unlock",
	.usage = "[--passphrase-fd N]",
	.summary = "open the sealed authority key for this master's agent",
	.about = "A cluster made with init --passphrase keeps its signing key "
		 "sealed on disk.  The\nrunning agent of a master holds it in "
		 "memory from here until it ends; without it no\nmachine "
		 "joins, no certificate is renewed and no change reaches the "
		 "nodes.\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_STATE,
	OPTS_OF(unlock_rows, struct unlock_opts),
	.run = run_unlock,
};

static int
run_unlock(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct unlock_opts *o = opts;
	char passphrase[PASSPHRASE_SIZE];
	json_t *answer;

	(void)argc;
	(void)argv;
	if (!localagent_runs(context_state(cx)))
		return err_set(e, ERR_UNREACHABLE,
		    "no agent runs here to unlock the key for (start it with: "
		    "nodeagent run)");
	if (passphrase_read(o->passphrase_fd, false, passphrase, e) == -1)
		return -1;
	answer = localagent_ask(context_state(cx),
	    json_pack("{s:s,s:s}", "do", "unlock", "passphrase", passphrase),
	    e);
	secret_wipe(passphrase, sizeof(passphrase));
	if (answer == NULL)
		return -1;
	json_decref(answer);
	return report_done(cx, "The authority key is open.");
}
