/*
 * mime.h: the media type of a file by its extension: the system's table
 * (/etc/mime.types), and ours for what that does not know.
 */
#ifndef MUSTER_STATIC_MIME_H
#define MUSTER_STATIC_MIME_H

#include <stdbool.h>
#include <stddef.h>

#define MIME_TYPES_FILE "/etc/mime.types"
#define MIME_TYPE_MAX	128 /* with its NUL; longer ones are passed over */

struct mime;

/* text: a mime.types(5) file, size bytes; NULL: our table alone.  NULL: no
 * memory. */
struct mime *mime_new(const char *text, size_t size);
void mime_free(struct mime *);

/* Never NULL: "application/octet-stream" for what nobody knows.  In any
 * case. */
const char *mime_type(const struct mime *, const char *extension);

/* Whether it is text, which has a charset. */
bool mime_is_text(const char *type);

#endif
