/* main.c: nodeagent, the program of every node: its table of contents. */
#include <stdio.h>
#include <string.h>

#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "nodeagent/agent.h"
#include "nodeagent/child.h"
#include "nodeagent/control.h"
#include "nodeagent/join.h"
#include "nodeagent/options.h"

static int version(const struct options *, struct err *);
static int help(const struct options *, struct err *);

/* Each returns 0, or -1 with the err that is told and decides the exit
 * status. */
static const struct {
	const char *name;
	int (*run)(const struct options *, struct err *);
} commands[] = {
	{ "run", agent_run },
	{ "join", join_run },
	{ "status", control_status },
	{ "version", version },
	{ "help", help },
};

int
main(int argc, char **argv)
{
	struct options o;
	struct err e;
	int rv = -1;

	child_save_limits();
	daemon_prepare();
	if (options_parse(argc, argv, &o, &e) == 0 && secret_init(&e) == 0) {
		log_open("nodeagent", o.verbose ? LOG_LVL_DEBUG : LOG_LVL_INFO);
		for (size_t i = 0; i < nitems(commands); i++)
			if (strcmp(commands[i].name, o.command) == 0)
				rv = commands[i].run(&o, &e);
	}
	if (rv == 0)
		return 0;
	fprintf(stderr, "nodeagent: %s\n", e.text);
	return err_exit_status(e.code);
}

static int
version(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	puts("nodeagent " MUSTER_VERSION);
	return 0;
}

static int
help(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	options_help();
	return 0;
}
