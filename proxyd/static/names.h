/*
 * names.h: what a path's name alone says about it: whether the proxy may
 * serve it, must not show it, or leaves it to the node.
 */
#ifndef MUSTER_STATIC_NAMES_H
#define MUSTER_STATIC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum name_kind {
	NAME_NODE,   /* a program, or nothing we know: the node's */
	NAME_PLAIN,  /* a plain file by its name */
	NAME_HIDDEN, /* a dot file or a backup: never shown */
};

/*
 * Judges a path as path.h leaves it.  extensions: what the site calls plain,
 * lower case, split by one space; "": the table in names.c.
 */
enum name_kind name_judge(const char *path, size_t len, const char *extensions);

/* The last extension of a path, without its dot; "" for none. */
const char *name_extension(const char *path, size_t len);

/* Names that, in a directory, may win over index.html; ends with NULL. */
extern const char *const name_indexes[];

#endif
