/*
 * http_date.h: dates in fields (RFC 9110, section 5.6.7): one form is
 * written, three are read.
 */
#ifndef MUSTER_STATIC_HTTP_DATE_H
#define MUSTER_STATIC_HTTP_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_DATE_MAX 32 /* with its NUL */

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void http_date_format(int64_t wall_s, char out[HTTP_DATE_MAX]);

/* False: none of the three forms, or no such day.  now_s places the years
 * of two digits. */
bool http_date_parse(const char *text, size_t len, int64_t now_s,
    int64_t *wall_s);

#endif
