/*
 * uuid.h: random identities (RFC 9562, version 4) in their text form.
 */
#ifndef MUSTER_UUID_H
#define MUSTER_UUID_H

#include <stdbool.h>

#define UUID_LEN 36

void uuid_make(char uuid[UUID_LEN + 1]);

/* Lower-case hexadecimal in groups of 8-4-4-4-12. */
bool uuid_valid(const char *);

#endif
