/*
 * commands.h: every command, in the order in which help lists them within
 * their section.  A new command: define `const struct command cmd_x` in
 * cmd_x.c and add its line here.
 */
#ifndef CLUSTERCTL_COMMANDS_H
#define CLUSTERCTL_COMMANDS_H

#include "clusterctl/command.h"

#define COMMANDS(X)    \
	X(cmd_ping)                                                          \
	X(cmd_version) \
	X(cmd_help)

#define DECLARE_COMMAND(name) extern const struct command name;
COMMANDS(DECLARE_COMMAND)
#undef DECLARE_COMMAND

#endif
