/*
 * xalloc.h: memory or death.  clusterctl runs once and holds no service: out
 * of memory it says so and exits with ERR_LOCAL's status.
 */
#ifndef CLUSTERCTL_XALLOC_H
#define CLUSTERCTL_XALLOC_H

#include <stddef.h>
#include <stdio.h>

void *xcalloc(size_t n, size_t size);
void *xreallocarray(void *, size_t n, size_t size);
char *xstrdup(const char *);
char *xstrndup(const char *, size_t n);

/* A stream into memory; *text is the caller's after xmemclose(). */
FILE *xmemopen(char **text, size_t *size);
void xmemclose(FILE *);

#endif
