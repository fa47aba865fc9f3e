/* clock.c: see clock.h. */
#include "common/base/clock.h"

#include <time.h>

static int64_t
clock_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
clock_mono_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

int64_t
clock_wall_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

void
clock_format_utc(int64_t wall_ms, char *buf, size_t size)
{
	time_t s = (time_t)(wall_ms / 1000);
	struct tm tm;

	gmtime_r(&s, &tm);
	if (strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0 && size > 0)
		buf[0] = '\0';
}
