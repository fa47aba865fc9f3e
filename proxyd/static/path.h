/*
 * path.h: the path of a request as a path in the file system: decoded, dot
 * segments taken away, slashes merged.
 */
#ifndef MUSTER_STATIC_PATH_H
#define MUSTER_STATIC_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_PATH_MAX 1024 /* with its NUL; longer ones are the node's */

struct file_path {
	uint16_t len;
	bool directory; /* it ended with a slash, which is not in text */
	bool normal;	/* it came as it is here: fit for a Location */
	char text[FILE_PATH_MAX]; /* no slash before it; "": the home */
};

/*
 * Decodes raw[0, len), the part of a request target before '?', which begins
 * with '/'.  False when it names no file, whatever the node makes of it: a
 * broken escape, an escaped NUL, slash or control byte, a path above the
 * root, a segment or a whole that is too long.
 */
bool file_path_decode(struct file_path *, const char *raw, size_t len);

#endif
