/* upgrade.c: see upgrade.h. */
#include "proxyd/process/upgrade.h"

#include <signal.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/process/child.h"
#include "proxyd/process/ipc.h"

static int send_legacy(int fd, const struct legacy *, struct err *);
static int send_listeners(int fd, enum ipc_type, const struct listeners *,
    struct err *);
static int take(struct legacy *, struct ipc_message *, struct err *);

int
upgrade_start(const char *program, const char *const *args,
    const struct legacy *old, pid_t *pid, int *fd, struct err *e)
{
	if (child_start(program, args, pid, fd, e) == -1)
		return -1;
	if (send_legacy(*fd, old, e) == 0)
		return 0;
	kill(*pid, SIGKILL);
	io_close(fd);
	return -1;
}

int
upgrade_take(struct legacy *l, struct err *e)
{
	struct ipc_message m;

	*l = (struct legacy){ .lock_fd = -1, .admin_fd = -1, .board.fd = -1 };
	do {
		if (ipc_recv(IPC_CHILD_FD, &m, e) != 1)
			return err_set(e, ERR_LOCAL,
			    "the old master went away in the upgrade");
		if (take(l, &m, e) == -1)
			return -1;
	} while (m.type != IPC_END);
	return 0;
}

static int
send_legacy(int fd, const struct legacy *l, struct err *e)
{
	if (ipc_send(fd, IPC_SCOREBOARD, 0, l->board.fd, NULL, e) == -1 ||
	    ipc_send(fd, IPC_LOCK, 0, l->lock_fd, NULL, e) == -1)
		return -1;
	if (l->admin_fd != -1 &&
	    ipc_send(fd, IPC_ADMIN, 0, l->admin_fd, NULL, e) == -1)
		return -1;
	if (send_listeners(fd, IPC_LISTENER, &l->listeners, e) == -1 ||
	    send_listeners(fd, IPC_STATUS_LISTENER, &l->status, e) == -1)
		return -1;
	return ipc_send(fd, IPC_END, 0, -1, NULL, e);
}

static int
send_listeners(int fd, enum ipc_type type, const struct listeners *l,
    struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (ipc_send(fd, type, l->rows[i].worker, l->rows[i].fd,
			l->rows[i].text, e) == -1)
			return -1;
	return 0;
}

static int
take(struct legacy *l, struct ipc_message *m, struct err *e)
{
	switch (m->type) {
	case IPC_SCOREBOARD:
		if (scoreboard_map(&l->board, m->fd, e) == -1) {
			log_warn("%s; counters begin anew", e->text);
			l->board = (struct scoreboard){ .fd = -1 };
		}
		return 0;
	case IPC_LOCK:
		l->lock_fd = m->fd;
		return 0;
	case IPC_ADMIN:
		l->admin_fd = m->fd;
		return 0;
	case IPC_LISTENER:
		return listeners_take(&l->listeners, m->text, (int)m->number,
		    m->fd, e);
	case IPC_STATUS_LISTENER:
		return listeners_take(&l->status, m->text, (int)m->number,
		    m->fd, e);
	default:
		io_close(&m->fd); /* a later version's: not needed here */
		return 0;
	}
}
