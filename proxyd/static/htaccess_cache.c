/* htaccess_cache.c: see htaccess_cache.h. */
#include "proxyd/static/htaccess_cache.h"

#define SETTLED_S 2 /* also covers file systems that count seconds */

static uint32_t
slot_of(const struct stat *st)
{
	uint64_t h = ((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32) *
	    0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32) & (HTACCESS_SLOTS - 1);
}

bool
htaccess_cache_find(const struct htaccess_cache *c, const struct stat *st,
    enum htaccess *verdict)
{
	const struct htaccess_slot *s = &c->slots[slot_of(st)];

	if (s->ino == 0 || s->ino != (uint64_t)st->st_ino ||
	    s->dev != (uint64_t)st->st_dev || s->size != st->st_size ||
	    s->change_s != st->st_ctim.tv_sec ||
	    s->change_ns != st->st_ctim.tv_nsec)
		return false;
	*verdict = (enum htaccess)s->verdict;
	return true;
}

void
htaccess_cache_put(struct htaccess_cache *c, const struct stat *st,
    enum htaccess verdict, int64_t now_s)
{
	if (now_s - st->st_ctim.tv_sec < SETTLED_S)
		return;
	c->slots[slot_of(st)] = (struct htaccess_slot){
		.dev = (uint64_t)st->st_dev,
		.ino = (uint64_t)st->st_ino,
		.size = st->st_size,
		.change_s = st->st_ctim.tv_sec,
		.change_ns = st->st_ctim.tv_nsec,
		.verdict = (uint8_t)verdict,
	};
}
