/* watch.c: see watch.h. */
#include "clusterctl/watch.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "clusterctl/outcome.h"
#include "clusterctl/output.h"
#include "common/base/text.h"

#define EVERY	  "2s"
#define LEAST_MS  100
#define MOST_MS	  (24 * 3600 * 1000L)
#define HOME_WIPE "\033[H\033[J"

static int take_watch(void *into, struct opt_word *, struct err *);

const struct opt watch_rows[N_WATCH_ROWS] = {
	{ .name = "watch",
	    .letter = 'w',
	    .type = OPT_HOOK,
	    .arg = "[TIME]",
	    .hook = take_watch,
	    .help = "show it again every TIME (" EVERY ") until Ctrl-C" },
};

int
watch_run(struct context *cx, const struct watch_opts *o,
    int (*show)(struct context *, const void *, struct err *), const void *arg,
    struct err *e)
{
	int rv;

	if (o->every_ms == 0)
		return show(cx, arg, e);
	for (;;) {
		if (output_is_tty() && !output_is_json())
			fputs(HOME_WIPE, stdout);
		if ((rv = show(cx, arg, e)) == -1)
			output_error(e);
		if (rv == outcome_exit_status(OUTCOME_CANCELLED))
			return rv;
		if (fflush(stdout) == EOF) {
			if (errno == EPIPE)
				output_reader_gone();
			return err_errno(e, ERR_LOCAL,
			    "cannot write the output");
		}
		poll(NULL, 0, (int)o->every_ms);
		if (context_refresh(cx, e) == -1)
			output_error(e);
	}
}

/* A word behind it is its time if it begins as one. */
static int
take_watch(void *into, struct opt_word *w, struct err *e)
{
	struct watch_opts *o = into;
	const char *text = EVERY;

	if (w->value != NULL &&
	    (w->attached || isdigit((unsigned char)*w->value))) {
		w->used = true;
		text = w->value;
	}
	if (text_parse_duration("--watch", text, MOST_MS, &o->every_ms, e) ==
	    -1)
		return -1;
	if (o->every_ms < LEAST_MS)
		return err_set(e, ERR_USAGE, "--watch is at least %dms",
		    LEAST_MS);
	return 0;
}
