/*
 * commands.h: every command, in the order in which help lists them within
 * their section.  A new command: define `const struct command cmd_x` in
 * cmd_x.c and add its line here.
 */
#ifndef CLUSTERCTL_COMMANDS_H
#define CLUSTERCTL_COMMANDS_H

#include "clusterctl/command.h"

#define COMMANDS(X)             \
	X(cmd_exec)             \
	X(cmd_push)             \
	X(cmd_pull)             \
	X(cmd_ping)             \
	X(cmd_show_nodes)       \
	X(cmd_init)             \
	X(cmd_enroll)           \
	X(cmd_token_list)       \
	X(cmd_token_revoke)     \
	X(cmd_nodes)            \
	X(cmd_approve)          \
	X(cmd_reject)           \
	X(cmd_roles)            \
	X(cmd_node_add)         \
	X(cmd_node_set)         \
	X(cmd_node_rename)      \
	X(cmd_node_remove)      \
	X(cmd_node_role)        \
	X(cmd_node_drain)       \
	X(cmd_node_undrain)     \
	X(cmd_node_maintenance) \
	X(cmd_node_show)        \
	X(cmd_node_conflicts)   \
	X(cmd_role_list)        \
	X(cmd_role_show)        \
	X(cmd_role_add)         \
	X(cmd_role_set)         \
	X(cmd_role_remove)      \
	X(cmd_site_add)         \
	X(cmd_site_set)         \
	X(cmd_site_del)         \
	X(cmd_site_enable)      \
	X(cmd_site_disable)     \
	X(cmd_site_alias)       \
	X(cmd_site_limit)       \
	X(cmd_site_cert)        \
	X(cmd_site_list)        \
	X(cmd_site_show)        \
	X(cmd_certs)            \
	X(cmd_show_sites)       \
	X(cmd_show_workers)     \
	X(cmd_set)              \
	X(cmd_get)              \
	X(cmd_operator_add)     \
	X(cmd_operator_join)    \
	X(cmd_operator_set)     \
	X(cmd_operator_token)   \
	X(cmd_operator_list)    \
	X(cmd_operator_revoke)  \
	X(cmd_unlock)           \
	X(cmd_nodeset_expand)   \
	X(cmd_nodeset_fold)     \
	X(cmd_nodeset_count)    \
	X(cmd_completion)       \
	X(cmd_registry_export)  \
	X(cmd_registry_apply)   \
	X(cmd_registry_check)   \
	X(cmd_registry_backup)  \
	X(cmd_registry_log)     \
	X(cmd_audit)            \
	X(cmd_version)          \
	X(cmd_help)

#define DECLARE_COMMAND(name) extern const struct command name;
COMMANDS(DECLARE_COMMAND)
#undef DECLARE_COMMAND

#endif
