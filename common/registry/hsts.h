/*
 * hsts.h: what browsers are told to remember of a site: that it speaks HTTPS
 * only (RFC 6797).
 */
#ifndef MUSTER_HSTS_H
#define MUSTER_HSTS_H

#include "common/base/err.h"

#define HSTS_VALUE_MAX 80

/*
 * From "31536000", "365d,includeSubDomains", "365d,includeSubDomains,preload"
 * (commas or spaces; words of either case) to the value of the field
 * Strict-Transport-Security.  ERR_USAGE with the rule that it broke.
 */
int hsts_value(const char *text, char value[HSTS_VALUE_MAX], struct err *);

#endif
