/*
 * option_type.h: what each type of option takes and how it is shown, private
 * to option.c.
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

/* By enum option_type. */
extern const struct option_type_spec option_types[];

#endif
