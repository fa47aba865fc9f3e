/*
 * text.h: what people type for numbers: durations, sizes, counts, percents.
 * Each refuses what it does not understand, with the rule.
 */
#ifndef MUSTER_TEXT_H
#define MUSTER_TEXT_H

#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* A whole decimal number within [min, max]; no sign, no space, no wrap. */
int text_parse_u64(const char *what, const char *text, uint64_t min,
    uint64_t max, uint64_t *value, struct err *);

/* "500ms", "30s", "5m", "1h", "90d" or a bare number of seconds, in
 * milliseconds, at most max_ms. */
int text_parse_duration(const char *what, const char *text, int64_t max_ms,
    int64_t *ms, struct err *);

/* A name that a shell could give a variable. */
bool text_is_env_name(const char *name, size_t len);

/* Whether bytes are UTF-8 without over-long forms or surrogates. */
bool text_is_utf8(const char *bytes, size_t n);

/* "100M", "64K", "1G", "0" in bytes: powers of 1024. */
int text_parse_size(const char *what, const char *text, uint64_t max,
    uint64_t *bytes, struct err *);

/* "5" or "25%" of `total`, rounded down. */
int text_parse_share(const char *what, const char *text, uint64_t total,
    uint64_t *n, struct err *);

/* "3d4h", "2m10s", "1.5s", "12ms": short enough for a table. */
void text_format_duration(int64_t ms, char *buf, size_t size);

/* "0", "512", "1.5K", "23M": short enough for a table. */
void text_format_size(uint64_t bytes, char *buf, size_t size);

#endif
