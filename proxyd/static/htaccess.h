/*
 * htaccess.h: whether what stands in an .htaccess could change how a plain
 * file is answered.
 *
 * It understands nothing: a table in htaccess.c lists the directives known
 * to be harmless, with the reason; every other line, and every line that is
 * not formed as it must be, counts as one that decides.  Then the request is
 * the node's, which does understand.
 */
#ifndef MUSTER_STATIC_HTACCESS_H
#define MUSTER_STATIC_HTACCESS_H

#include <stddef.h>

#define HTACCESS_MAX (64U << 10) /* bytes; a longer one decides, unread */

enum htaccess {
	HTACCESS_HARMLESS,
	HTACCESS_DIRECTORY, /* matters when a directory is asked for */
	HTACCESS_DECIDES,   /* matters, or may */
};

/* Ordered: the worst line is the file's verdict.  Needs no NUL behind it. */
enum htaccess htaccess_judge(const char *text, size_t size);

#endif
