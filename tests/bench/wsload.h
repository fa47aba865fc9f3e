/*
 * wsload.h: what a run of the load generator is asked for and what it found;
 * the measuring is in wsload.c.
 */
#ifndef MUSTER_BENCH_WSLOAD_H
#define MUSTER_BENCH_WSLOAD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* X(name, word): why a connection failed. */
#define FAILURES(X)                                      \
	X(SOCKET, "socket")   /* none to be had */       \
	X(CONNECT, "connect") /* refused, unreachable */ \
	X(TLS, "tls")	      /* handshake or record */  \
	X(RESET, "reset")                                \
	X(EOF, "end") /* in the middle */                \
	X(TIMEOUT, "time-out")                           \
	X(STATUS, "status") /* no 101 */                 \
	X(ACCEPT, "accept") /* for another key */        \
	X(FRAME, "frame")   /* none, or a wrong one */   \
	X(ECHO, "echo")	    /* not what was sent */      \
	X(CLOSE, "close")   /* not closed as agreed */

enum failure {
#define X(name, word) FAIL_##name,
	FAILURES(X)
#undef X
	    FAIL_N
};

struct latencies {
	int64_t *us;
	size_t n;
};

struct outcome {
	size_t connections, at_once;
	bool hold, tls;
	int64_t total_us;
	struct latencies handshake, message; /* from connect(); of an echo */
	size_t done, failed[FAIL_N];
};

static inline int
compare_us(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* What `percent` of them were within; they must be sorted. */
static inline int64_t
percentile(const struct latencies *l, unsigned percent)
{
	return l->n == 0 ? 0 : l->us[(l->n - 1) * percent / 100];
}

static inline double
mean(const struct latencies *l)
{
	double sum = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += (double)l->us[i];
	return l->n == 0 ? 0 : sum / (double)l->n;
}

static inline void
print_latencies(const char *name, struct latencies *l, bool json)
{
	qsort(l->us, l->n, sizeof(*l->us), compare_us);
	printf(json ? "\"%s_us\": {\"mean\": %.1f, \"p50\": %" PRId64
		      ", \"p99\": %" PRId64 ", \"max\": %" PRId64 "}, " :
		      "; %s us: mean %.1f p50 %" PRId64 " p99 %" PRId64
		      " max %" PRId64,
	    name, mean(l), percentile(l, 50), percentile(l, 99),
	    percentile(l, 100));
}

static inline void
print_failures(const struct outcome *o, bool json)
{
	static const char *const words[] = {
#define X(name, word) [FAIL_##name] = word,
		FAILURES(X)
#undef X
	};
	const char *before = json ? "" : "; failed: ";

	for (size_t i = 0; i < FAIL_N; i++) {
		if (o->failed[i] == 0)
			continue;
		printf(json ? "%s\"%s\": %zu" : "%s%s %zu", before, words[i],
		    o->failed[i]);
		before = ", ";
	}
}

/* One line. */
static inline void
print_outcome(struct outcome *o, bool json)
{
	double s = (double)o->total_us / 1e6;

	if (json)
		printf("{\"connections\": %zu, \"at_once\": %zu, \"hold\": "
		       "%s, \"tls\": %s, \"done\": %zu, \"seconds\": %.6f, ",
		    o->connections, o->at_once, o->hold ? "true" : "false",
		    o->tls ? "true" : "false", o->done, s);
	else
		printf("%zu of %zu connections, %zu at once%s%s: %.3f s",
		    o->done, o->connections, o->at_once,
		    o->hold ? ", held" : "", o->tls ? ", TLS" : "", s);
	print_latencies("handshake", &o->handshake, json);
	print_latencies("message", &o->message, json);
	if (json)
		printf("\"failed\": {");
	print_failures(o, json);
	puts(json ? "}}" : "");
}

#endif
