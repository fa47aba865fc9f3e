/*
 * log.h: one line a message, to standard error (the journal takes it from
 * there).  Daemons log; the library does not, but at debug level.
 */
#ifndef MUSTER_LOG_H
#define MUSTER_LOG_H

#include "common/base/err.h"

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

/* Names the program in each line; more -v, more said (default: INFO).
 * Below systemd lines carry <N> priorities instead of a time stamp. */
void log_open(const char *program, enum log_level max);

void log_error(const char *fmt, ...) PRINTF(1, 2);
void log_warn(const char *fmt, ...) PRINTF(1, 2);
void log_info(const char *fmt, ...) PRINTF(1, 2);
void log_debug(const char *fmt, ...) PRINTF(1, 2);

#endif
