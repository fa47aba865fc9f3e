/* window.c: see window.h. */
#include "clusterctl/window.h"

size_t
window_room(const struct window *w, const struct channel *c)
{
	uint64_t under_way = w->sent - w->taken;

	if (channel_queued(c) >= CHANNEL_HIGH_WATER ||
	    under_way >= PROTO_WINDOW)
		return 0;
	return (size_t)(PROTO_WINDOW - under_way);
}

void
window_taken(struct window *w, const uint8_t body[8])
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | body[i];
	/* A node that says nonsense harms its own stream only. */
	if (n > w->taken && n <= w->sent)
		w->taken = n;
}
