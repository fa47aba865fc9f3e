/* exec_pty.c: see exec_pty.h. */
#include "clusterctl/exec_pty.h"

#include <sys/ioctl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"

struct exec_pty {
	struct context *cx;
	struct termios before;
	bool raw;
	struct task *task; /* while its session is open */
	struct event *keys, *resized;
};

static void window_size(uint16_t *rows, uint16_t *cols);
static void on_keys(evutil_socket_t, short, void *);
static void on_resized(evutil_socket_t, short, void *);

struct exec_pty *
exec_pty_new(struct context *cx, struct err *e)
{
	struct exec_pty *p = xcalloc(1, sizeof(*p));

	p->cx = cx;
	if (tcgetattr(STDIN_FILENO, &p->before) == 0)
		return p;
	err_set(e, ERR_USAGE, "--pty needs a terminal as standard input");
	free(p);
	return NULL;
}

void
exec_pty_free(struct exec_pty *p)
{
	if (p == NULL)
		return;
	exec_pty_stop(p);
	free(p);
}

json_t *
exec_pty_request(const struct exec_pty *p)
{
	const char *term = getenv("TERM");
	uint16_t rows, cols;

	(void)p;
	window_size(&rows, &cols);
	return json_pack("{s:i, s:i, s:s}", "rows", rows, "cols", cols, "term",
	    term != NULL && *term != '\0' ? term : "dumb");
}

int
exec_pty_start(struct exec_pty *p, struct task *t, struct err *e)
{
	struct event_base *base = context_base(p->cx);
	struct termios raw = p->before;

	p->keys =
	    event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_keys, p);
	p->resized = evsignal_new(base, SIGWINCH, on_resized, p);
	if (p->keys == NULL || event_add(p->keys, NULL) == -1 ||
	    p->resized == NULL || event_add(p->resized, NULL) == -1)
		return err_set(e, ERR_LOCAL, "cannot wait for the terminal");
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set the terminal");
	p->raw = true;
	p->task = t;
	return 0;
}

int
exec_pty_output(struct exec_pty *p, const void *bytes, size_t n, struct err *e)
{
	(void)p;
	if (io_write_n(STDOUT_FILENO, bytes, n) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write to the terminal");
	return 0;
}

void
exec_pty_more(struct exec_pty *p)
{
	if (p->keys != NULL)
		event_add(p->keys, NULL);
}

void
exec_pty_stop(struct exec_pty *p)
{
	if (p->raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &p->before);
	p->raw = false;
	p->task = NULL;
	if (p->keys != NULL)
		event_free(p->keys);
	if (p->resized != NULL)
		event_free(p->resized);
	p->keys = p->resized = NULL;
}

static void
window_size(uint16_t *rows, uint16_t *cols)
{
	struct winsize ws = { .ws_row = 24, .ws_col = 80 };

	ioctl(STDIN_FILENO, TIOCGWINSZ, &ws);
	*rows = ws.ws_row > 0 ? ws.ws_row : 24;
	*cols = ws.ws_col > 0 ? ws.ws_col : 80;
}

static void
on_keys(evutil_socket_t fd, short what, void *arg)
{
	struct exec_pty *p = arg;
	char buf[4096];
	struct err e;
	ssize_t n;
	int rv;

	(void)what;
	n = read(fd, buf, sizeof(buf));
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		rv = task_send(p->task, REC_STDIN, buf, (size_t)n, &e);
	else
		rv = task_send(p->task, REC_EOF, NULL, 0, &e);
	if (n <= 0 || channel_queued(p->task->channel) > CHANNEL_HIGH_WATER)
		event_del(p->keys);
	if (rv == -1)
		task_end(p->task, OUTCOME_LOST, &e);
}

static void
on_resized(evutil_socket_t fd, short what, void *arg)
{
	struct exec_pty *p = arg;
	uint16_t rows, cols;
	uint8_t body[4];
	struct err e;

	(void)fd;
	(void)what;
	window_size(&rows, &cols);
	body[0] = (uint8_t)(rows >> 8);
	body[1] = (uint8_t)rows;
	body[2] = (uint8_t)(cols >> 8);
	body[3] = (uint8_t)cols;
	if (task_send(p->task, REC_RESIZE, body, sizeof(body), &e) == -1)
		task_end(p->task, OUTCOME_LOST, &e);
}
