/*
 * bucket.h: a token bucket in one 64-bit word that all workers share: the
 * generic cell rate algorithm (ITU-T I.371, annex A: virtual scheduling).
 *
 * The word is the time when the bucket will be full again, in ns of the
 * monotonic clock.  Tokens that are taken move it on by the time in which
 * they grow; it may be ahead of now by the time in which a whole bucket
 * grows, and no more.  So nothing is ever refilled, and one compare-and-swap
 * takes tokens exactly, whoever else does so.
 */
#ifndef MUSTER_BUCKET_H
#define MUSTER_BUCKET_H

#include <stdatomic.h>
#include <stdint.h>

#define BUCKET_TAKE_MAX (1U << 21) /* tokens at once */

/* Clocks that workers go by differ at most so much; a word that is further
 * ahead is one of a slower rate, before it was changed. */
#define BUCKET_SKEW_NS 1000000000ULL

struct bucket_rate {
	uint64_t step;	   /* one token grows in, in ns / 2^20; 0: no bound */
	uint64_t whole_ns; /* and all that fit */
};

/* n tokens (at least one) each period (at most an hour), of which `burst` at
 * once. */
struct bucket_rate bucket_rate(uint64_t n, uint64_t period_ns, uint64_t burst);

/* Takes n.  0: they are taken; else: not, and in how many ns they would be
 * there if nobody else took any. */
uint64_t bucket_take(_Atomic uint64_t *, const struct bucket_rate *, uint64_t n,
    uint64_t now_ns);

/* Takes as many as there are, at least `least` (or none) and at most `most`.
 * Returns how many. */
uint64_t bucket_take_some(_Atomic uint64_t *, const struct bucket_rate *,
    uint64_t least, uint64_t most, uint64_t now_ns);

/* Of `taken` tokens only `used` were needed. */
void bucket_give(_Atomic uint64_t *, const struct bucket_rate *, uint64_t taken,
    uint64_t used);

#endif
