/* localagent.c: see localagent.h. */
#include "clusterctl/localagent.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "common/net/proto.h"

#define SOCKET_NAME "nodeagent.sock"
#define ANSWER_MAX  4096
#define ANSWER_S    30 /* Argon2id on a small, busy machine */

static int connect_agent(const struct state *, int *fd, struct err *);
static int send_line(int fd, json_t *request, struct err *);
static json_t *read_answer(int fd, struct err *);

bool
localagent_runs(const struct state *st)
{
	struct err ignored;
	int fd;

	if (connect_agent(st, &fd, &ignored) == -1)
		return false;
	close(fd);
	return true;
}

json_t *
localagent_ask(const struct state *st, json_t *request, struct err *e)
{
	json_t *answer = NULL;
	int fd;

	if (connect_agent(st, &fd, e) == 0) {
		if (send_line(fd, request, e) == 0)
			answer = read_answer(fd, e);
		close(fd);
	}
	json_decref(request);
	return answer;
}

static int
connect_agent(const struct state *st, int *fd, struct err *e)
{
	struct timeval limit = { .tv_sec = ANSWER_S };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char run[PATH_MAX];

	state_path(st, STATE_RUN, run);
	if ((size_t)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", run,
		SOCKET_NAME) >= sizeof(sun.sun_path))
		return err_set(e, ERR_LOCAL,
		    "the path %s is too long for a socket", run);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a socket");
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(*fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return 0;
	err_errno(e, ERR_UNREACHABLE,
	    "no agent answers at %s (start it with: nodeagent run)",
	    sun.sun_path);
	io_close(fd);
	return -1;
}

/* The request may hold a passphrase: its text is wiped. */
static int
send_line(int fd, json_t *request, struct err *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len;
	int rv;

	if (text == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	len = strlen(text);
	rv = io_write_n(fd, text, len) == 0 ? io_write_n(fd, "\n", 1) : -1;
	if (rv == -1)
		err_errno(e, ERR_UNREACHABLE, "cannot ask the agent");
	sodium_memzero(text, len);
	free(text);
	return rv;
}

static json_t *
read_answer(int fd, struct err *e)
{
	char buf[ANSWER_MAX];
	size_t n = 0;
	json_t *answer;

	while (n < sizeof(buf)) {
		ssize_t got = read(fd, buf + n, sizeof(buf) - n);

		if (got <= 0)
			break;
		n += (size_t)got;
		if (memchr(buf, '\n', n) != NULL)
			break;
	}
	answer = json_parse_object(buf, n, sizeof(buf), e);
	if (answer == NULL) {
		err_set(e, ERR_UNREACHABLE,
		    "the agent of this machine gave no answer; see its log");
		return NULL;
	}
	if (json_object_get(answer, "code") == NULL)
		return answer;
	proto_parse_error(buf, n, e);
	json_decref(answer);
	return NULL;
}
