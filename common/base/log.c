/* log.c: see log.h. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *word;
	int priority; /* syslog(3), which the journal reads */
} log_levels[] = {
	[LOG_LVL_ERROR] = { "error", 3 },
	[LOG_LVL_WARN] = { "warn", 4 },
	[LOG_LVL_INFO] = { "info", 6 },
	[LOG_LVL_DEBUG] = { "debug", 7 },
};

static const char *log_program = "muster";
static enum log_level log_max = LOG_LVL_INFO;
static bool log_journal;

static void log_line(enum log_level, const char *fmt, va_list) PRINTF(2, 0);

#define LOG_FUNCTION(name, level)         \
	void name(const char *fmt, ...)   \
	{                                 \
		va_list ap;               \
                                          \
		va_start(ap, fmt);        \
		log_line(level, fmt, ap); \
		va_end(ap);               \
	}

/* clang-format off */
LOG_FUNCTION(log_error, LOG_LVL_ERROR)
LOG_FUNCTION(log_warn, LOG_LVL_WARN)
LOG_FUNCTION(log_info, LOG_LVL_INFO)
LOG_FUNCTION(log_debug, LOG_LVL_DEBUG)
/* clang-format on */

void
log_open(const char *program, enum log_level max)
{
	log_program = program;
	log_max = max;
	log_journal = getenv("JOURNAL_STREAM") != NULL;
}

static void
log_line(enum log_level level, const char *fmt, va_list ap)
{
	char line[1024], stamp[32];
	struct timespec now;
	struct tm tm;
	int n, room;

	if (level > log_max)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	if (log_journal)
		n = snprintf(line, sizeof(line),
		    "<%d>%s: ", log_levels[level].priority, log_program);
	else
		n = snprintf(line, sizeof(line), "%s.%03ldZ %s[%d] %s: ", stamp,
		    now.tv_nsec / 1000000, log_program, (int)getpid(),
		    log_levels[level].word);
	room = (int)sizeof(line) - n - 1;
	vsnprintf(line + n, (size_t)room, fmt, ap);
	for (char *p = line; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	n = (int)strlen(line);
	line[n++] = '\n';
	/* One write, so that lines of two processes never mix. */
	if (write(STDERR_FILENO, line, (size_t)n) == -1)
		return; /* nobody is left to tell */
}
