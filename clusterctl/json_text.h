/*
 * json_text.h: JSON written piece by piece, for texts too large to hold
 * twice.
 */
#ifndef CLUSTERCTL_JSON_TEXT_H
#define CLUSTERCTL_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* "name": "text", or "name_base64": "..." for bytes that are no UTF-8;
 * a comma before it. */
void json_text_member(FILE *, const char *name, const char *bytes, size_t n);

#endif
