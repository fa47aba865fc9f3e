/* options.c: see options.h. */
#include "nodeagent/options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/text.h"

enum option_type { FLAG, TEXT, DESCRIPTOR };

static const struct {
	const char *name, *letter, *command; /* command NULL: any */
	enum option_type type;
	size_t offset;
	const char *argument, *help;
} option_rows[] = {
	{ "--state", NULL, NULL, TEXT, offsetof(struct options, state), "DIR",
	    "the state directory (default: $MUSTER_STATE or "
	    "/var/lib/muster)" },
	{ "--verbose", "-v", NULL, FLAG, offsetof(struct options, verbose), "",
	    "say more" },
	{ "--listen", NULL, "run", TEXT, offsetof(struct options, listen),
	    "IP:PORT", "in place of the registered address; also IP or PORT" },
	{ "--ready-fd", NULL, "run", DESCRIPTOR,
	    offsetof(struct options, ready_fd), "N",
	    "write \"ready\" to this descriptor once serving" },
	{ "--name", NULL, "join", TEXT, offsetof(struct options, name), "NAME",
	    "of this node (default: the token's, or the host name)" },
	{ "--address", NULL, "join", TEXT, offsetof(struct options, address),
	    "IP[:PORT]",
	    "where this node is reached (default: as the master "
	    "sees it, port 7400)" },
	{ "--no-start", NULL, "join", FLAG, offsetof(struct options, no_start),
	    "", "do not start the service" },
};

static const struct {
	const char *name, *argument, *help;
} command_rows[] = {
	{ "run", "", "serve in the foreground" },
	{ "join", "TOKEN|-", "enroll this machine (-: token on stdin)" },
	{ "status", "", "what the running agent says of itself" },
	{ "version", "", "print the version" },
	{ "help", "", "this page" },
};

static int parse_option(int argc, char **argv, int *i, struct options *,
    struct err *);
static int store(size_t row, char *value, struct options *, struct err *);
static bool matches(size_t row, const char *arg, char **value);
static int parse_word(char *arg, struct options *, struct err *);
static int check_options(unsigned seen, const struct options *, struct err *);

int
options_parse(int argc, char **argv, struct options *o, struct err *e)
{
	unsigned seen = 0;
	int row;

	memset(o, 0, sizeof(*o));
	o->ready_fd = -1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0) {
			o->command = "help";
			return 0;
		}
		if (strcmp(argv[i], "--version") == 0) {
			o->command = "version";
			return 0;
		}
		if (argv[i][0] == '-' && argv[i][1] != '\0') {
			row = parse_option(argc, argv, &i, o, e);
			if (row == -1)
				return -1;
			seen |= 1U << row;
		} else if (parse_word(argv[i], o, e) == -1)
			return -1;
	}
	if (o->command == NULL)
		return err_set(e, ERR_USAGE,
		    "which command? (run, join, status, version; try: "
		    "nodeagent help)");
	return check_options(seen, o, e);
}

void
options_help(void)
{
	puts("usage: nodeagent [--state DIR] COMMAND [options]\n");
	for (size_t i = 0; i < nitems(command_rows); i++) {
		printf("  %s %-*s %s\n", command_rows[i].name,
		    18 - (int)strlen(command_rows[i].name),
		    command_rows[i].argument, command_rows[i].help);
		for (size_t k = 0; k < nitems(option_rows); k++)
			if (option_rows[k].command != NULL &&
			    strcmp(option_rows[k].command,
				command_rows[i].name) == 0)
				printf("    %s %-*s %s\n", option_rows[k].name,
				    16 - (int)strlen(option_rows[k].name),
				    option_rows[k].argument,
				    option_rows[k].help);
	}
	puts("  with any of them:");
	for (size_t k = 0; k < nitems(option_rows); k++)
		if (option_rows[k].command == NULL)
			printf("    %s %-*s %s\n", option_rows[k].name,
			    16 - (int)strlen(option_rows[k].name),
			    option_rows[k].argument, option_rows[k].help);
	puts("\nSee nodeagent(8).");
}

/* Returns the option's row, or -1. */
static int
parse_option(int argc, char **argv, int *i, struct options *o, struct err *e)
{
	char *value = NULL;
	size_t row;

	for (row = 0; row < nitems(option_rows); row++)
		if (matches(row, argv[*i], &value))
			break;
	if (row == nitems(option_rows))
		return err_set(e, ERR_USAGE,
		    "unknown option %s (try: nodeagent help)", argv[*i]);
	if (option_rows[row].type == FLAG && value != NULL)
		return err_set(e, ERR_USAGE, "%s takes no value",
		    option_rows[row].name);
	if (option_rows[row].type != FLAG && value == NULL) {
		if (*i + 1 == argc)
			return err_set(e, ERR_USAGE, "%s needs a value (%s)",
			    option_rows[row].name, option_rows[row].argument);
		value = argv[++*i];
	}
	return store(row, value, o, e) == -1 ? -1 : (int)row;
}

static int
store(size_t row, char *value, struct options *o, struct err *e)
{
	void *field = (char *)o + option_rows[row].offset;
	uint64_t n;

	switch (option_rows[row].type) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case TEXT:
		*(const char **)field = value;
		return 0;
	case DESCRIPTOR:
		if (text_parse_u64(option_rows[row].name, value, 1, 1023, &n,
			e) == -1)
			return -1;
		*(int *)field = (int)n;
		return 0;
	}
	return 0;
}

/* "--name", "--name=VALUE", "-n". */
static bool
matches(size_t row, const char *arg, char **value)
{
	const char *name = option_rows[row].name;
	size_t len = strlen(name);

	if (option_rows[row].letter != NULL &&
	    strcmp(arg, option_rows[row].letter) == 0)
		return true;
	if (strncmp(arg, name, len) != 0 ||
	    (arg[len] != '\0' && arg[len] != '='))
		return false;
	if (arg[len] == '=')
		*value = (char *)(uintptr_t)(arg + len + 1);
	return true;
}

static int
parse_word(char *arg, struct options *o, struct err *e)
{
	if (o->command == NULL) {
		for (size_t i = 0; i < nitems(command_rows); i++)
			if (strcmp(command_rows[i].name, arg) == 0) {
				o->command = command_rows[i].name;
				return 0;
			}
		return err_set(e, ERR_USAGE,
		    "unknown command %s (try: nodeagent help)", arg);
	}
	if (strcmp(o->command, "join") == 0 && o->token == NULL) {
		o->token = arg;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s takes no more words",
	    o->command); /* not the word: it may be a token */
}

static int
check_options(unsigned seen, const struct options *o, struct err *e)
{
	for (size_t i = 0; i < nitems(option_rows); i++)
		if ((seen & (1U << i)) != 0 && option_rows[i].command != NULL &&
		    strcmp(option_rows[i].command, o->command) != 0)
			return err_set(e, ERR_USAGE,
			    "%s is an option of %s, not of %s",
			    option_rows[i].name, option_rows[i].command,
			    o->command);
	if (strcmp(o->command, "join") == 0 && o->token == NULL)
		return err_set(e, ERR_USAGE,
		    "join needs a token: nodeagent join TOKEN (from "
		    "clusterctl enroll on a master)");
	return 0;
}
