/* opener_child.c: see opener_child.h. */
#include "proxyd/process/opener_child.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "proxyd/process/child.h"
#include "proxyd/static/wire.h"

#define REST_MIN_MS  500
#define REST_MAX_MS  60000
#define LONG_LIFE_MS 10000 /* then it was well */

/* The next one comes later each time that one does not live long. */
static void
rest(struct opener_child *o)
{
	int64_t now_ms = clock_mono_ms();

	if (now_ms - o->started_ms >= LONG_LIFE_MS || o->rest_ms == 0)
		o->rest_ms = REST_MIN_MS;
	else if (o->rest_ms < REST_MAX_MS)
		o->rest_ms *= 2;
	o->due_ms = now_ms + o->rest_ms;
}

/* The master says whom it becomes, not the worker, who may be a stranger's by
 * then. */
int
opener_child_start(struct opener_child *o, const char *user, int *fd,
    struct err *e)
{
	static const char *const args[] = { "proxyd", "opener", NULL };
	struct wire_ask ask = { .kind = WIRE_START };
	struct iovec iov[2] = { { &ask, sizeof(ask) },
		{ (void *)(uintptr_t)user, strlen(user) } };
	int end;

	o->started_ms = clock_mono_ms();
	if (child_start(NULL, args, &o->pid, &end, e) == -1) {
		o->pid = 0;
		rest(o);
		return -1;
	}
	if (wire_send(end, iov, 2, -1) == -1) {
		err_errno(e, ERR_LOCAL, "cannot tell an opener its account");
		close(end);
		return -1; /* it ends, and the reaper sees it */
	}
	*fd = end;
	return 0;
}

bool
opener_child_reaped(struct opener_child *o, pid_t pid, int wait_status,
    pid_t worker)
{
	char how[80];

	if (o->pid == 0 || pid != o->pid)
		return false;
	o->pid = 0;
	/* Without a fault it has seen its worker end, who is reaped soon. */
	if (wait_status != 0) {
		child_describe(wait_status, how, sizeof(how));
		log_error("the opener of worker %d %s; starting another",
		    (int)worker, how);
	}
	rest(o);
	return true;
}

int
opener_child_due(const struct opener_child *o)
{
	int64_t left = o->due_ms - clock_mono_ms();

	if (o->pid != 0)
		return -1;
	return left > 0 ? (int)left : 0;
}
