/* bucket.c: see bucket.h. */
#include "proxyd/limits/bucket.h"

#define FRACTION   20 /* bits of a step behind the ns */
#define WHOLE	   (1ULL << FRACTION)
#define WHOLE_FROM (512 * WHOLE)
#define TOO_LONG   (UINT64_MAX / 4)
#define LONG_NS	   (1ULL << 43) /* such a time, as a step, is no overflow */

/* Steps that are long are whole ns, so that tokens taken one by one cost what
 * they would cost together. */
struct bucket_rate
bucket_rate(uint64_t n, uint64_t period_ns, uint64_t burst)
{
	unsigned __int128 wide = (unsigned __int128)period_ns << FRACTION;
	uint64_t step = (uint64_t)((wide + n - 1) / n);

	if (step >= WHOLE_FROM)
		step = (step + WHOLE - 1) & ~(WHOLE - 1);
	wide = (unsigned __int128)burst * step >> FRACTION;
	return (struct bucket_rate){
		.step = step,
		.whole_ns = wide < TOO_LONG ? (uint64_t)wide : TOO_LONG,
	};
}

/* Rounded up: never more than the rate. */
static uint64_t
cost(const struct bucket_rate *r, uint64_t n)
{
	unsigned __int128 ns = (unsigned __int128)n * r->step;

	return (uint64_t)((ns + WHOLE - 1) >> FRACTION);
}

/* How far ahead of now the bucket is: empty at whole_ns. */
static uint64_t
ahead(const struct bucket_rate *r, uint64_t word, uint64_t now_ns)
{
	if (word <= now_ns)
		return 0;
	return word - now_ns < r->whole_ns ? word - now_ns : r->whole_ns;
}

/* A word that a slower rate left far ahead would be believed for as long. */
static void
catch_up(_Atomic uint64_t *bucket, const struct bucket_rate *r, uint64_t word,
    uint64_t now_ns)
{
	if (word > now_ns && word - now_ns > r->whole_ns + BUCKET_SKEW_NS)
		atomic_compare_exchange_strong(bucket, &word,
		    now_ns + r->whole_ns);
}

uint64_t
bucket_take(_Atomic uint64_t *bucket, const struct bucket_rate *r, uint64_t n,
    uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(bucket, memory_order_relaxed);
	uint64_t price = cost(r, n), debt;

	do {
		debt = ahead(r, word, now_ns);
		if (debt + price > r->whole_ns) {
			catch_up(bucket, r, word, now_ns);
			return debt + price - r->whole_ns;
		}
	} while (!atomic_compare_exchange_weak(bucket, &word,
	    now_ns + debt + price));
	return 0;
}

uint64_t
bucket_take_some(_Atomic uint64_t *bucket, const struct bucket_rate *r,
    uint64_t least, uint64_t most, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(bucket, memory_order_relaxed);
	uint64_t debt, room, n;

	do {
		debt = ahead(r, word, now_ns);
		room = r->whole_ns - debt;
		if (room > LONG_NS) /* most of it is not asked for */
			room = LONG_NS;
		n = (room << FRACTION) / r->step;
		if (n > most)
			n = most;
		if (n == 0 || n < least) {
			catch_up(bucket, r, word, now_ns);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(bucket, &word,
	    now_ns + debt + cost(r, n)));
	return n;
}

void
bucket_give(_Atomic uint64_t *bucket, const struct bucket_rate *r,
    uint64_t taken, uint64_t used)
{
	uint64_t word = atomic_load_explicit(bucket, memory_order_relaxed);
	uint64_t back = cost(r, taken) - cost(r, used);

	/* It may have been emptied meanwhile. */
	while (!atomic_compare_exchange_weak(bucket, &word,
	    word > back ? word - back : 0))
		;
}
