/* limits.c: see limits.h. */
#include "nodeagent/limits.h"

#include <string.h>

#include <sodium.h>

#define FULL_MILLI ((int64_t)LIMITS_BURST * 1000)

static uint64_t source_of(const struct addr *);
static struct bucket *bucket_of(struct limits *, uint64_t source,
    int64_t now_ms);
static void refill(struct bucket *, int64_t now_ms);

void
limits_init(struct limits *l)
{
	memset(l, 0, sizeof(*l));
	randombytes_buf(l->hash_key, sizeof(l->hash_key));
}

bool
limits_take(struct limits *l, const struct addr *from, int64_t now_ms)
{
	struct bucket *b = bucket_of(l, source_of(from), now_ms);

	if (b->milli < 1000)
		return false;
	b->milli -= 1000;
	return true;
}

/* Never 0: the first byte tells the families apart. */
static uint64_t
source_of(const struct addr *a)
{
	uint64_t source = 0;

	if (a->u.sa.sa_family == AF_INET) {
		memcpy(&source, &a->u.in.sin_addr, 4);
		return (source << 8) | 4;
	}
	if (IN6_IS_ADDR_V4MAPPED(&a->u.in6.sin6_addr)) {
		memcpy(&source, &a->u.in6.sin6_addr.s6_addr[12], 4);
		return (source << 8) | 4;
	}
	memcpy(&source, &a->u.in6.sin6_addr, 8);
	return source == 0 ? 6 : source;
}

static struct bucket *
bucket_of(struct limits *l, uint64_t source, int64_t now_ms)
{
	unsigned char hash[crypto_shorthash_BYTES];
	struct bucket *set, *fullest;

	crypto_shorthash(hash, (const unsigned char *)&source, sizeof(source),
	    l->hash_key);
	set = l->buckets[hash[0] % LIMITS_SETS];
	fullest = &set[0];
	for (size_t i = 0; i < LIMITS_WAYS; i++) {
		if (set[i].source == 0)
			set[i].milli = FULL_MILLI;
		refill(&set[i], now_ms);
		if (set[i].source == source)
			return &set[i];
		if (set[i].milli > fullest->milli)
			fullest = &set[i];
	}
	/* A crowded set is a flood from many addresses: the newcomer inherits
	 * what the bucket has left, so that fresh addresses gain nothing. */
	fullest->source = source;
	return fullest;
}

static void
refill(struct bucket *b, int64_t now_ms)
{
	int64_t gained = (now_ms - b->filled_ms) * LIMITS_PER_S;

	b->filled_ms = now_ms;
	if (gained > FULL_MILLI - b->milli)
		b->milli = FULL_MILLI;
	else
		b->milli += gained;
}
