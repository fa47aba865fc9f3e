/* main.c: clusterctl: understand the command line, open what the command
 * needs, run it, leave with its exit status. */
#include <stdlib.h>
#include <sys/stat.h>

#include "clusterctl/command.h"
#include "clusterctl/context.h"
#include "clusterctl/output.h"
#include "common/base/daemon.h"
#include "common/base/log.h"
#include "common/base/secret.h"

static int perform(const struct invocation *, const char *typed);
static int help(const struct invocation *);

int
main(int argc, char **argv)
{
	char *typed = context_quote(argc - 1, argv + 1);
	mode_t mask = umask(077);
	struct invocation inv;
	struct err e;
	int status;

	daemon_prepare();
	umask(mask); /* what pull and --outdir write is the operator's */
	output_open(false, false);
	if (secret_init(&e) == -1 ||
	    command_parse(&inv, argc - 1, argv + 1, &e) == -1) {
		output_error(&e);
		return err_exit_status(e.code);
	}
	output_open(inv.global.json, inv.global.no_color);
	log_open("clusterctl",
	    inv.global.verbose > 1     ? LOG_LVL_DEBUG :
		inv.global.verbose > 0 ? LOG_LVL_INFO :
					 LOG_LVL_WARN);
	if (inv.command == NULL || inv.global.help)
		status = help(&inv);
	else
		status = perform(&inv, typed);
	free(inv.opts);
	free(typed);
	return output_close(status);
}

static int
perform(const struct invocation *inv, const char *typed)
{
	const struct command *c = inv->command;
	struct context *cx = context_new(inv->global.state, typed);
	struct err e;
	int status = -1;

	if (context_need(cx, c->needs, &e) == 0)
		status = c->run(cx, inv->opts, inv->argc, inv->argv, &e);
	if (status == -1) {
		output_error(&e);
		status = err_exit_status(e.code);
	}
	context_free(cx);
	return status;
}

/* Help that was asked for is a success; a line without a command is not. */
static int
help(const struct invocation *inv)
{
	command_help(inv->command, inv->family);
	return inv->global.help ? 0 : err_exit_status(ERR_USAGE);
}
