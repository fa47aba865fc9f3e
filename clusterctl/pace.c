/* pace.c: see pace.h. */
#include "clusterctl/pace.h"

#include <string.h>

#include "common/base/io.h"
#include "common/base/text.h"

#define AT(field) .offset = offsetof(struct pace_opts, field)

const struct opt pace_rows[N_PACE_ROWS] = {
	{ .name = "connect-timeout",
	    .type = OPT_DURATION,
	    .arg = "TIME",
	    .max = 3600 * 1000,
	    .initial = FANOUT_CONNECT_S,
	    AT(connect_ms),
	    .help = "give up a node that does not answer" },
	{ .name = "fanout",
	    .letter = 'f',
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .min = 1,
	    .max = FANOUT_MAX,
	    .initial = FANOUT_DEFAULT,
	    AT(fanout),
	    .help = "nodes at once" },
	{ .name = "serial",
	    .type = OPT_FLAG,
	    AT(serial),
	    .help = "one node after the other" },
	{ .name = "batch",
	    .letter = 'b',
	    .type = OPT_TEXT,
	    .arg = "N|P%",
	    AT(batch),
	    .help = "at most so many at once: as one ends, the next begins" },
	{ .name = "max-fail",
	    .type = OPT_TEXT,
	    .arg = "N|P%",
	    AT(max_fail),
	    .help = "begin no more nodes once more than this have failed" },
	{ .name = "fail-fast",
	    .letter = 'k',
	    .type = OPT_FLAG,
	    AT(fail_fast),
	    .help = "the same as --max-fail 0" },
};

int
pace_apply(const struct pace_opts *o, struct fanout_plan *p, struct err *e)
{
	uint64_t n;

	p->window = o->serial ? 1 : o->fanout;
	p->connect_ms = o->connect_ms;
	p->max_fail = o->fail_fast ? 0 : -1;
	if (o->batch != NULL) {
		if (text_parse_share("--batch", o->batch, p->n, &n, e) == -1)
			return -1;
		/* A small part of few nodes is one; 0 of them is nothing. */
		if (n == 0 && strspn(o->batch, "0%") == strlen(o->batch))
			return err_set(e, ERR_USAGE,
			    "--batch is at least one node");
		if (n == 0)
			n = 1;
		if (n < p->window)
			p->window = n;
	}
	if (o->max_fail != NULL) {
		if (text_parse_share("--max-fail", o->max_fail, p->n, &n, e) ==
		    -1)
			return -1;
		p->max_fail = (int64_t)n;
	}
	return 0;
}
