/* cmd_help.c: help and version; the texts come from the command table. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <string.h>

#include "clusterctl/commands.h"
#include "clusterctl/output.h"
#include "common/base/io.h"
#include "common/net/proto.h"

#define HELP_WIDTH 80

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
static void print_filled(const char *text);
static size_t print_word(const char *word, size_t len, size_t used);
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

/* Paragraphs, whose lines are filled anew; those that are indented stay. */
static void
print_filled(const char *text)
{
	size_t used = 0, len;
	const char *end;

	putchar('\n');
	for (const char *p = text; *p != '\0'; p = end + (*end != '\0')) {
		end = p + strcspn(p, "\n");
		if (p == end || *p == ' ') {
			printf("%s%.*s\n", used > 0 ? "\n" : "", (int)(end - p),
			    p);
			used = 0;
			continue;
		}
		for (; p < end; p += len + strspn(p + len, " ")) {
			len = strcspn(p, " \n");
			used = print_word(p, len, used);
		}
	}
	if (used > 0)
		putchar('\n');
}

/* Behind `used` columns; returns how many there are then.  Two spaces follow
 * a sentence. */
static size_t
print_word(const char *word, size_t len, size_t used)
{
	size_t gap = used == 0 ? 0 : word[-1] == ' ' && word[-2] == ' ' ? 2 : 1;

	if (used > 0 && word[-1] == '\n' && word[-2] == '.')
		gap = 2;
	if (used + gap + len > HELP_WIDTH) {
		putchar('\n');
		used = gap = 0;
	}
	printf("%*s%.*s", (int)gap, "", (int)len, word);
	return used + gap + len;
}

static void
help_command(const struct command *c)
{
	const struct opt_set *set;

	printf("clusterctl %s: %s\n\nusage: clusterctl %s%s%s\n", c->name,
	    c->summary, c->name, *c->usage != '\0' ? " " : "", c->usage);
	if (c->about != NULL)
		print_filled(c->about);
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
