/* cmd_help.c: help and version; the texts come from the command table. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/commands.h"
#include "clusterctl/output.h"
#include "common/base/io.h"
#include "common/net/proto.h"

static const char *const sections[N_SECTIONS] = {
	[SECTION_RUN] = "Give orders",
	[SECTION_NODES] = "Nodes and roles",
	[SECTION_SITES] = "Sites and traffic",
	[SECTION_REGISTRY] = "Registry, operators, audit",
	[SECTION_SELF] = "This program",
};

static int run_help(struct context *, const void *, int, char **, struct err *);
static int run_version(struct context *, const void *, int, char **,
    struct err *);
static void help_all(void);
static bool help_family(const char *family);
static void help_command(const struct command *);

const struct command cmd_help = {
	.name = "help",
	.usage = "[TOPIC]",
	.summary = "all commands, or one of them in full",
	.section = SECTION_SELF,
	.max_args = 2,
	.run = run_help,
};

const struct command cmd_version = {
	.name = "version",
	.usage = "",
	.summary = "the version of this program and of its protocol",
	.section = SECTION_SELF,
	.run = run_version,
};

void
command_help(const struct command *c, const char *family)
{
	if (c != NULL)
		help_command(c);
	else if (family == NULL || !help_family(family))
		help_all();
}

static int
run_help(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct command *c;
	char name[64];

	(void)cx;
	(void)opts;
	if (argc == 0) {
		help_all();
		return 0;
	}
	snprintf(name, sizeof(name), "%.30s%s%.30s", argv[0],
	    argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
	c = command_find(name);
	if (c != NULL)
		help_command(c);
	else if (argc > 1 || !help_family(name))
		return command_unknown(name, e);
	return 0;
}

static int
run_version(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)cx;
	(void)opts;
	(void)argc;
	(void)argv;
	(void)e;
	if (output_is_json())
		output_json(json_pack("{s:s,s:[i,i]}", "version",
		    MUSTER_VERSION, "protocol", PROTO_LOWEST, PROTO_HIGHEST));
	else
		printf("muster %s, protocol %d to %d\n", MUSTER_VERSION,
		    PROTO_LOWEST, PROTO_HIGHEST);
	return 0;
}

static void
help_all(void)
{
	const struct command *c;

	puts("clusterctl: the one tool for a muster cluster\n\n"
	     "usage: clusterctl [--state DIR] COMMAND [options] ...");
	for (int s = 0; s < N_SECTIONS; s++) {
		bool titled = false;

		for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
			if ((int)c->section != s)
				continue;
			if (!titled)
				printf("\n%s%s%s\n", output_colour(COLOUR_BOLD),
				    sections[s], output_colour(COLOUR_NONE));
			titled = true;
			printf("  %-20s %s\n", c->name, c->summary);
		}
	}
	puts("\nclusterctl help COMMAND says more; so does man clusterctl.");
}

/* Lists "node add", "node set" ... for "node"; false when there are none. */
static bool
help_family(const char *family)
{
	size_t len = strlen(family);
	const struct command *c;
	bool any = false;

	for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
		if (strncmp(c->name, family, len) != 0 || c->name[len] != ' ')
			continue;
		if (!any)
			printf("usage: clusterctl %s COMMAND ...\n\n", family);
		any = true;
		printf("  %-20s %s\n", c->name, c->summary);
	}
	return any;
}

static void
help_command(const struct command *c)
{
	const struct opt_set *set;

	printf("clusterctl %s: %s\n\nusage: clusterctl %s%s%s\n", c->name,
	    c->summary, c->name, *c->usage != '\0' ? " " : "", c->usage);
	if (c->about != NULL)
		printf("\n%s", c->about);
	for (size_t i = 0; (set = command_set(c, i)) != NULL; i++) {
		printf("\n%s%s%s\n", output_colour(COLOUR_BOLD), set->title,
		    output_colour(COLOUR_NONE));
		opts_help(set);
	}
	printf("\n%sEverywhere%s\n", output_colour(COLOUR_BOLD),
	    output_colour(COLOUR_NONE));
	opts_help(command_global_opts());
	if (c->examples != NULL)
		printf("\n%sExamples%s\n%s", output_colour(COLOUR_BOLD),
		    output_colour(COLOUR_NONE), c->examples);
}
