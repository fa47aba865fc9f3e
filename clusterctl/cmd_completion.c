/* cmd_completion.c: completion scripts for bash and zsh.  What there is to
 * complete comes from the tables of commands and options; both shells read
 * the same list and differ in how they show it. */
#include "clusterctl/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"

static int run_completion(struct context *, const void *, int, char **,
    struct err *);
static void print_commands(void);
static void print_table(void);
static void print_command(const struct command *);
static void print_options(const struct opt_set *);
static void print_values(const struct opt_set *);
static void print_kinds(const char *usage);
static const char *kind_of(const char *word);
static bool is_choice(const char *arg);
static bool is_first_of_family(size_t i);

const struct command cmd_completion = {
	.name = "completion",
	.usage = "bash|zsh",
	.summary = "a completion script for the shell",
	.about = "Completes commands, options, and the names of nodes, roles, "
		 "sites and settings.\n",
	.examples = "  source <(clusterctl completion bash)\n"
		    "  clusterctl completion zsh >~/.zfunc/_clusterctl\n",
	.section = SECTION_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_completion,
};

/* What an upper-case word of a usage or an option's value stands for. */
static const struct {
	const char *word, *kind;
} kinds[] = {
	{ "NODE", "node" },
	{ "SET", "node" },
	{ "ROLE", "role" },
	{ "SITE", "site" },
	{ "KEY", "key" },
	{ "OPERATOR", "operator" },
	{ "TOPIC", "command" },
	{ "FILE", "file" },
	{ "DEST", "file" },
	{ "DIR", "file" },
};

/* Read by both shells: walks the words before the cursor, then knows the
 * command, the option that waits for its value, and what may come. */
static const char common_part[] =
    "_clusterctl_walk()\n"
    "{\n"
    "\tcommand= state= waits= flags= values= kinds=command\n"
    "\t_clusterctl_table\n"
    "\twhile [ $# -gt 0 ]; do\n"
    "\t\tif [ -n \"$waits\" ]; then\n"
    "\t\t\t[ \"$waits\" != --state ] || state=$1\n"
    "\t\t\twaits=\n"
    "\t\telse\n"
    "\t\t\tcase $1 in\n"
    "\t\t\t--*=*) ;;\n"
    "\t\t\t-*) case \" $values \" in *\" $1:\"*) waits=$1 ;; esac ;;\n"
    "\t\t\t*) _clusterctl_word \"$1\" ;;\n"
    "\t\t\tesac\n"
    "\t\tfi\n"
    "\t\tshift\n"
    "\tdone\n"
    "\tif [ -n \"$waits\" ]; then\n"
    "\t\tkinds=\" $values\"\n"
    "\t\tkinds=${kinds##*\" $waits:\"}\n"
    "\t\tkinds=${kinds%% *}\n"
    "\tfi\n"
    "}\n"
    "_clusterctl_word()\n"
    "{\n"
    "\tcase $command in\n"
    "\t'') command=$1 ;;\n"
    "\t*\\ *) return ;;\n"
    "\t*) case \" $kinds \" in *' of '*) command=\"$command $1\" ;; esac ;;\n"
    "\tesac\n"
    "\t_clusterctl_table\n"
    "}\n"
    "_clusterctl_names()\n"
    "{\n"
    "\tcase $1 in\n"
    "\tnode) \"$program\" ${state:+--state} ${state:+\"$state\"} nodes ;;\n"
    "\trole) \"$program\" ${state:+--state} ${state:+\"$state\"} role list ;;\n"
    "\tsite) \"$program\" ${state:+--state} ${state:+\"$state\"} site list ;;\n"
    "\tkey) \"$program\" ${state:+--state} ${state:+\"$state\"} get --all |\n"
    "\t\tcut -f 1 ;;\n"
    "\toperator) \"$program\" ${state:+--state} ${state:+\"$state\"} \\\n"
    "\t\toperator list | cut -f 1 ;;\n"
    "\tcommand) echo \"$_clusterctl_commands\" ;;\n"
    "\tof|file|-) ;;\n"
    "\t*\\|*) echo \"${1//|/ }\" ;;\n"
    "\t*) echo \"$1\" ;;\n"
    "\tesac 2>/dev/null\n"
    "}\n";

static const char bash_part[] =
    "_clusterctl()\n"
    "{\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]}\n"
    "\tlocal command state waits flags values kinds kind base\n"
    "\t_clusterctl_walk \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"\n"
    "\tCOMPREPLY=()\n"
    "\tif [ -z \"$waits\" ] && [ \"${cur:0:1}\" = - ]; then\n"
    "\t\tCOMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tfor kind in $kinds; do\n"
    "\t\tbase=$cur\n"
    "\t\t[ $kind != node ] || base=${cur##*[,!&^]}\n"
    "\t\t[ $kind != file ] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
    "\t\tCOMPREPLY+=($(compgen -P \"${cur%\"$base\"}\" \\\n"
    "\t\t    -W \"$(_clusterctl_names $kind)\" -- \"$base\"))\n"
    "\tdone\n"
    "}\n"
    "complete -F _clusterctl clusterctl\n";

static const char zsh_part[] =
    "_clusterctl()\n"
    "{\n"
    "\tsetopt localoptions shwordsplit\n"
    "\tlocal cur=${words[CURRENT]} program=${words[1]}\n"
    "\tlocal command state waits flags values kinds kind base\n"
    "\t_clusterctl_walk \"${(@)words[2,CURRENT-1]}\"\n"
    "\tif [[ -z $waits && $cur = -* ]]; then\n"
    "\t\tcompadd -- $flags\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tfor kind in $kinds; do\n"
    "\t\tbase=$cur\n"
    "\t\t[ $kind != node ] || base=${cur##*[,!&^]}\n"
    "\t\t[ $kind != file ] || _files\n"
    "\t\tcompadd -p \"${cur%$base}\" -- $(_clusterctl_names $kind)\n"
    "\tdone\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _clusterctl ]; then\n"
    "\t_clusterctl \"$@\"\n"
    "else\n"
    "\tcompdef _clusterctl clusterctl\n"
    "fi\n";

static int
run_completion(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	bool zsh = strcmp(argv[0], "zsh") == 0;

	(void)cx;
	(void)opts;
	(void)argc;
	if (!zsh && strcmp(argv[0], "bash") != 0)
		return err_set(e, ERR_USAGE,
		    "completion: for bash or zsh, not for '%.40s'", argv[0]);
	if (zsh)
		puts("#compdef clusterctl");
	puts("# Made by clusterctl completion; do not edit.");
	print_commands();
	print_table();
	fputs(common_part, stdout);
	fputs(zsh ? zsh_part : bash_part, stdout);
	return 0;
}

static void
print_commands(void)
{
	const struct command *c;

	fputs("_clusterctl_commands='", stdout);
	for (size_t i = 0; (c = command_at(i)) != NULL; i++)
		if (is_first_of_family(i))
			printf("%s%.*s", i > 0 ? " " : "",
			    (int)strcspn(c->name, " "), c->name);
	puts("'");
}

/* flags: all options.  values: those with one, as OPTION:KIND, where a KIND
 * may be "on|off".  kinds: what an argument may be; "of" marks a family, whose second words follow. */
static void
print_table(void)
{
	const struct command *c, *other;

	puts("_clusterctl_table()\n{\n\tcase $command in");
	for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
		size_t len = strcspn(c->name, " ");

		print_command(c);
		if (c->name[len] == '\0' || !is_first_of_family(i))
			continue;
		printf("\t%.*s) flags= values= kinds='of", (int)len, c->name);
		for (size_t j = i; (other = command_at(j)) != NULL; j++)
			if (strncmp(other->name, c->name, len + 1) == 0)
				printf("%s", other->name + len);
		puts("' ;;");
	}
	puts("\t'') ;;\n\t*) flags= values= kinds= ;;");
	puts("\tesac\n\tflags=\"$flags --help --json --no-color --state "
	     "--verbose\"\n\tvalues=\"$values --state:file\"\n}");
}

static void
print_command(const struct command *c)
{
	const struct opt_set *set;

	printf("\t'%s')\n\t\tflags='", c->name);
	for (size_t i = 0; (set = command_set(c, i)) != NULL; i++)
		print_options(set);
	fputs("'\n\t\tvalues='", stdout);
	for (size_t i = 0; (set = command_set(c, i)) != NULL; i++)
		print_values(set);
	fputs("'\n\t\tkinds='", stdout);
	print_kinds(c->usage);
	puts("' ;;");
}

static void
print_options(const struct opt_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		if (set->rows[i].name != NULL)
			printf(" --%s", set->rows[i].name);
		if (set->rows[i].letter != '\0')
			printf(" -%c", set->rows[i].letter);
	}
}

static void
print_values(const struct opt_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->rows[i];
		const char *kind;

		if (o->arg == NULL)
			continue;
		kind = is_choice(o->arg) ? o->arg : kind_of(o->arg);
		if (o->name != NULL)
			printf(" --%s:%s", o->name, kind != NULL ? kind : "-");
		if (o->letter != '\0')
			printf(" -%c:%s", o->letter, kind != NULL ? kind : "-");
	}
}

/* "add|del SITE HOST..." is "add del site"; options are not arguments. */
static void
print_kinds(const char *usage)
{
	bool of_option = false;
	char word[64];

	for (const char *p = usage; *p != '\0';) {
		size_t len = strcspn(p, " []|."), skip = strspn(p, " []|.");

		if (skip > 0) {
			p += skip;
			continue;
		}
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (!of_option && *word != '-') {
			if (kind_of(word) != NULL)
				printf(" %s", kind_of(word));
			else if (islower((unsigned char)*word) &&
			    strcmp(word, "options") != 0)
				printf(" %s", word);
		}
		of_option = *word == '-' && p[len] == ' ';
		p += len;
	}
}

static const char *
kind_of(const char *word)
{
	for (size_t i = 0; i < nitems(kinds); i++)
		if (strcmp(kinds[i].word, word) == 0)
			return kinds[i].kind;
	return NULL;
}

/* "on|off": what may be typed as it stands. */
static bool
is_choice(const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789_|";

	return strchr(arg, '|') != NULL && arg[strspn(arg, plain)] == '\0';
}

static bool
is_first_of_family(size_t i)
{
	const char *name = command_at(i)->name;
	size_t len = strcspn(name, " ");

	for (size_t j = 0; j < i; j++)
		if (strncmp(command_at(j)->name, name, len) == 0 &&
		    strcspn(command_at(j)->name, " ") == len)
			return false;
	return true;
}
