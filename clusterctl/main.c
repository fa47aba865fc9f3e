/* main.c: clusterctl: understand the command line, open what the command
 * needs, run it, leave with its exit status. */
#include <sys/stat.h>
#include <stdlib.h>

#include "clusterctl/command.h"
#include "clusterctl/context.h"
#include "clusterctl/order_log.h"
#include "clusterctl/output.h"
#include "common/base/daemon.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/registry/registry.h"

static int serve(int argc, char **argv, const char *typed, struct err *);
static int perform(const struct invocation *, const char *typed, struct err *);
static void note_change(struct context *);
static int help(const struct invocation *);

int
main(int argc, char **argv)
{
	char *typed = context_quote(argc - 1, argv + 1);
	mode_t mask = umask(077);
	struct err e;
	int status = -1;

	daemon_prepare();
	umask(mask); /* what pull and --outdir write is the operator's */
	output_open(false, false);
	if (secret_init(&e) == 0)
		status = serve(argc - 1, argv + 1, typed, &e);
	if (status == -1) {
		output_error(&e);
		status = err_exit_status(e.code);
	}
	free(typed);
	return output_close(status);
}

static int
serve(int argc, char **argv, const char *typed, struct err *e)
{
	struct invocation inv;
	int status;

	status = command_parse(&inv, argc, argv, e);
	if (status == 0) {
		output_open(inv.global.json, inv.global.no_color);
		log_open("clusterctl",
		    inv.global.verbose > 1     ? LOG_LVL_DEBUG :
			inv.global.verbose > 0 ? LOG_LVL_INFO :
						 LOG_LVL_WARN);
		status = inv.command == NULL || inv.global.help ?
		    help(&inv) :
		    perform(&inv, typed, e);
	}
	free(inv.opts);
	return status;
}

static int
perform(const struct invocation *inv, const char *typed, struct err *e)
{
	const struct command *c = inv->command;
	struct context *cx = context_new(inv->global.state, typed);
	int status = -1;

	if (context_need(cx, c->needs, e) == 0)
		status = c->run(cx, inv->opts, inv->argc, inv->argv, e);
	note_change(cx);
	context_free(cx);
	return status;
}

/* Also after a failure: part of a command may have been a change. */
static void
note_change(struct context *cx)
{
	struct registry *r = context_registry(cx);
	int64_t revision = r != NULL ? registry_last_change(r) : 0;

	if (revision != 0)
		order_log_change(cx, revision);
}

/* Help that was asked for is a success; a line without a command is not. */
static int
help(const struct invocation *inv)
{
	command_help(inv->command, inv->family);
	return inv->global.help ? 0 : err_exit_status(ERR_USAGE);
}
