/*
 * option_type.h: what each type of option takes and how it is shown, private
 * to option*.c.
 */
#ifndef MUSTER_OPTION_TYPE_H
#define MUSTER_OPTION_TYPE_H

#include "common/registry/option.h"

struct option_type_spec {
	/* Checks and stores; the field stands on failure. */
	int (*parse)(const struct option *, const char *text, void *field,
	    struct err *);
	void (*format)(const struct option *, const void *field,
	    char text[OPTION_TEXT_MAX]);
	void (*rule)(const struct option *, char *buf, size_t size);
};

/* "keepalive '2h' is not 0ms..1h".  Returns -1. */
int option_broken(const struct option *, const char *text, struct err *);

/* option_rate.c: of OPTION_RATE and OPTION_BANDWIDTH. */
int option_rate_parse(const struct option *, const char *text, void *field,
    struct err *);
void option_rate_format(const struct option *, const void *field,
    char text[OPTION_TEXT_MAX]);
void option_rate_rule(const struct option *, char *buf, size_t size);

/* By enum option_type. */
extern const struct option_type_spec option_types[];

#endif
