/*
 * clock.h: monotonic time for every age and time-out; wall time only to
 * store or display, in UTC milliseconds.
 */
#ifndef MUSTER_CLOCK_H
#define MUSTER_CLOCK_H

#include <stdint.h>
#include <stddef.h>

/* Milliseconds of a clock that never steps. */
int64_t clock_mono_ms(void);

/* Milliseconds since 1970, UTC; may step either way. */
int64_t clock_wall_ms(void);

/* "2026-11-30T10:20:30Z" (20 characters and a NUL). */
void clock_format_utc(int64_t wall_ms, char *buf, size_t size);

#endif
