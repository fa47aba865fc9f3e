/* preflight.c: see preflight.h. */
#include "nodeagent/preflight.h"

#include <sys/socket.h>
#include <netinet/in.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/name.h"
#include "common/base/text.h"
#include "common/net/authority.h"
#include "common/net/proto.h"
#include "common/registry/roster.h"

#define CONNECT_MS   3000
#define SKEW_WARN_MS 2000

static int has_key(const struct node *, void *key);
static int try_write(const struct state *, struct err *);
static bool agent_runs(const struct state *);
static int try_bind(const struct addr *, struct err *);
static int try_connect(const struct addr *, struct err *);

void
preflight_ok(const char *fmt, ...)
{
	va_list ap;

	fputs("  ok    ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void
preflight_fail(struct preflight *p, const struct err *why)
{
	if (p->n_failed++ == 0)
		p->code = why->code;
	printf("  FAIL  %s\n", why->text);
	fflush(stdout);
}

void
preflight_token(struct preflight *p, const struct token *t)
{
	int64_t now_ms = clock_wall_ms();
	char until[32];
	struct err e;

	clock_format_utc(t->not_after_s * 1000, until, sizeof(until));
	if (t->kind != CERT_NODE)
		err_set(&e, ERR_USAGE,
		    "the token is for an operator, not for a machine (use "
		    "it with: clusterctl operator join)");
	else if (now_ms / 1000 > t->not_after_s + PROTO_SKEW_S)
		err_set(&e, ERR_EXPIRED,
		    "the token ended at %s by this machine's clock (if the "
		    "clock is right, make a new one on the master: "
		    "clusterctl enroll)",
		    until);
	else {
		preflight_ok("token: good until %s", until);
		return;
	}
	preflight_fail(p, &e);
}

void
preflight_state(struct preflight *p, const char *dir, struct state *state)
{
	struct err e;

	if (state_create(state, dir, &e) == -1 || try_write(state, &e) == -1)
		preflight_fail(p, &e);
	else
		preflight_ok("state directory %s", state->dir);
}

void
preflight_cluster(struct preflight *p, const struct state *state,
    const struct token *t)
{
	uint8_t authority[KEY_SIZE];
	char path[PATH_MAX];
	struct roster *roster;
	struct err e, known;

	if (state_has(state, STATE_REGISTRY)) {
		err_set(&e, ERR_CONFLICT,
		    "%s holds the registry of a cluster: a master does not "
		    "join (choose another place with --state)",
		    state->dir);
		preflight_fail(p, &e);
		return;
	}
	/* What cannot be read is no cluster's, and is replaced. */
	if (authority_load_public(state, authority, &known) == -1 ||
	    (roster = roster_open(state_path(state, STATE_ROSTER, path),
		 authority, &known)) == NULL)
		return;
	if (roster_each_node(roster, has_key, (void *)(uintptr_t)t->master_key,
		&known) == 0) {
		err_set(&e, ERR_CONFLICT,
		    "%s belongs to a node of the cluster %s, which knows no "
		    "such master (to leave that cluster remove the directory)",
		    state->dir, roster_cluster_name(roster));
		preflight_fail(p, &e);
	}
	roster_close(roster);
}

void
preflight_name(struct preflight *p, const char *name, const char *hostname)
{
	struct err e;

	if (name == NULL) {
		preflight_ok("name: the token's, or %s", hostname);
		return;
	}
	if (name_check("node name", name, &e) == -1)
		preflight_fail(p, &e);
	else
		preflight_ok("name: %s", name);
}

void
preflight_port(struct preflight *p, const struct state *state,
    const char *address)
{
	char text[ADDR_TEXT_MAX];
	struct addr a;
	struct err e;

	p->agent_running = agent_runs(state);
	if (addr_parse(address != NULL ? address : "::", PROTO_DEFAULT_PORT, &a,
		&e) == -1) {
		preflight_fail(p, &e);
		return;
	}
	addr_format(&a, text);
	if (p->agent_running)
		preflight_ok("port %u: an agent of this directory runs",
		    (unsigned)addr_port(&a));
	else if (try_bind(&a, &e) == -1)
		preflight_fail(p, &e);
	else
		preflight_ok("port %u is free", (unsigned)addr_port(&a));
}

void
preflight_master(struct preflight *p, const struct token *t)
{
	struct err e[TOKEN_ADDRS_MAX];
	char text[ADDR_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < t->n_addrs; i++) {
		p->reachable[i] = try_connect(&t->addrs[i], &e[i]) == 0;
		n += p->reachable[i];
	}
	for (size_t i = 0; i < t->n_addrs; i++) {
		addr_format(&t->addrs[i], text);
		if (p->reachable[i])
			preflight_ok("master %s answers", text);
		else if (n > 0)
			preflight_ok("master %s does not answer; another "
				     "address does",
			    text);
		else
			preflight_fail(p, &e[i]);
	}
}

int
preflight_clock(struct preflight *p, int64_t skew_ms, struct err *e)
{
	int64_t off_ms = skew_ms < 0 ? -skew_ms : skew_ms;
	const char *side = skew_ms > 0 ? "behind" : "ahead of";
	char text[32];

	text_format_duration(off_ms, text, sizeof(text));
	if (off_ms <= PROTO_SKEW_S * 1000LL) {
		preflight_ok("clock: %s %s the master's%s", text, side,
		    off_ms > SKEW_WARN_MS ? " (better: timedatectl set-ntp "
					    "true)" :
					    "");
		return 0;
	}
	err_set(e, ERR_LOCAL,
	    "this machine's clock is %s %s the master's; set it (timedatectl "
	    "set-ntp true) and run the same line again",
	    text, side);
	preflight_fail(p, e);
	return -1;
}

int
preflight_result(const struct preflight *p, struct err *e)
{
	if (p->n_failed == 0)
		return 0;
	return err_set(e, p->code,
	    "join: %zu check%s failed (above); nothing was changed on the "
	    "master",
	    p->n_failed, p->n_failed == 1 ? "" : "s");
}

static int
has_key(const struct node *n, void *key)
{
	return n->has_key && memcmp(n->key, key, KEY_SIZE) == 0;
}

static int
try_write(const struct state *state, struct err *e)
{
	char path[PATH_MAX];

	if (io_path(path, sizeof(path), state->dir, ".writable", e) == -1 ||
	    io_write_file(path, "?", 1, 0600, e) == -1)
		return -1;
	unlink(path);
	return 0;
}

static bool
agent_runs(const struct state *state)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct err e;
	int fd;

	if (io_path(path, sizeof(path), state_path(state, STATE_RUN, dir),
		"nodeagent.lock", &e) == -1 ||
	    access(path, F_OK) == -1)
		return false;
	if (daemon_lock(path, &fd, &e) == -1)
		return e.code == ERR_BUSY;
	close(fd);
	return false;
}

static int
try_bind(const struct addr *a, struct err *e)
{
	static const int on = 1;
	char text[ADDR_TEXT_MAX];
	int fd, rv;

	addr_format(a, text);
	fd = socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return errno == EAFNOSUPPORT ?
		    0 :
		    err_errno(e, ERR_LOCAL, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	rv = bind(fd, &a->u.sa, a->len);
	if (rv == 0)
		rv = listen(fd, 1);
	/* An address of a NAT or a network still to come is no failure. */
	if (rv == -1 && errno != EADDRNOTAVAIL)
		rv = err_errno(e, ERR_LOCAL,
		    "%s cannot be listened on (see: ss -ltnp; choose with "
		    "--address IP:PORT)",
		    text);
	else
		rv = 0;
	close(fd);
	return rv;
}

static int
try_connect(const struct addr *to, struct err *e)
{
	struct pollfd p = { .events = POLLOUT };
	char text[ADDR_TEXT_MAX];
	int why = 0;
	socklen_t len = sizeof(why);

	addr_format(to, text);
	p.fd = socket(to->u.sa.sa_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p.fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a socket");
	if (connect(p.fd, &to->u.sa, to->len) == -1 && errno != EINPROGRESS)
		why = errno;
	else if (poll(&p, 1, CONNECT_MS) != 1)
		why = ETIMEDOUT;
	else
		getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &why, &len);
	close(p.fd);
	if (why == 0)
		return 0;
	errno = why;
	return err_errno(e, ERR_UNREACHABLE,
	    "master %s (is nodeagent running there, and the port open in "
	    "every firewall between?)",
	    text);
}
