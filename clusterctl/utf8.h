/*
 * utf8.h: bytes of a node as text for people and for JSON.
 */
#ifndef MUSTER_UTF8_H
#define MUSTER_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_GROWTH 3 /* a cleaned byte takes up to so many */

/*
 * Writes n bytes as valid UTF-8 to `out`, which has room for UTF8_GROWTH * n,
 * and returns how many that are.  What is not UTF-8 becomes U+FFFD.  With
 * `harmless` no control reaches a terminal: control bytes show as ^[, the C1
 * controls and those that turn the direction of writing as U+FFFD; only
 * newline, tab, and a carriage return before a newline stay.
 */
size_t utf8_clean(const void *bytes, size_t n, bool harmless, char *out);

/* As $'...', which a shell reads back: for a name that is not UTF-8.  What
 * does not fit is left out. */
void utf8_quote(const char *name, char *out, size_t size);

/* How many of n bytes do not end within a character: a place to cut. */
size_t utf8_whole(const void *bytes, size_t n);

#endif
