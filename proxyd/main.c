/*
 * main.c: proxyd: the table of what it can be told to do.
 *
 * `worker` and `follower` are for the master alone: it starts this program
 * again for each child, so that no child inherits its memory.
 */
#include <sys/file.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/local.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/state.h"
#include "common/base/text.h"
#include "common/base/json.h"
#include "proxyd/admin/admin.h"
#include "proxyd/process/follower.h"
#include "proxyd/process/master.h"
#include "proxyd/process/worker.h"
#include "proxyd/static/opener.h"
#include "proxyd/tls/cert_check.h"

#define UPGRADE_MAX_MS 90000 /* the master gives up before */
#define LOOK_EVERY_MS  50
#define SILENCE_S      10 /* of a master, then something is wrong */
#define ANSWER_MAX     (64U << 20)

struct options {
	const char *state;
	struct cert_check_paths check;
	int ready_fd;
	bool upgrade, verbose;
};

typedef int command_fn(const struct options *, struct err *);

static command_fn command_run, command_upgrade, command_worker, command_opener,
    command_follower, command_cert_check, command_version, command_help;

static const struct {
	const char *name;
	command_fn *fn;
	const char *help; /* NULL: not for people */
} commands[] = {
	{ "run", command_run, "serve in the foreground" },
	{ "upgrade", command_upgrade,
	    "replace the running proxyd by the installed one" },
	{ "cert-check", command_cert_check,
	    "say what a certificate is, and whether a site can have it" },
	{ "version", command_version, "print the version" },
	{ "help", command_help, "print this" },
	{ "worker", command_worker, NULL },
	{ "opener", command_opener, NULL },
	{ "follower", command_follower, NULL },
};

static int parse(int argc, char **argv, struct options *, const char **name,
    struct err *);
static int open_state(const struct options *, struct state *, struct err *);
static int failed_upgrades(const struct options *, int64_t *n, struct err *);
static int running_master(const struct options *, pid_t *, struct err *);

int
main(int argc, char **argv)
{
	struct options o = { .ready_fd = -1 };
	const char *name = NULL;
	struct err e;
	int rv = -1;

	daemon_prepare();
	if (secret_init(&e) == -1 || parse(argc, argv, &o, &name, &e) == -1)
		goto out;
	log_open("proxyd", o.verbose ? LOG_LVL_DEBUG : LOG_LVL_INFO);
	for (size_t i = 0; i < nitems(commands); i++)
		if (strcmp(commands[i].name, name) == 0) {
			rv = commands[i].fn(&o, &e);
			goto out;
		}
	err_set(&e, ERR_USAGE, "no such command '%.40s' (try: proxyd help)",
	    name);
out:
	if (rv == -1) {
		fprintf(stderr, "proxyd: %s\n", e.text);
		return err_exit_status(e.code);
	}
	return rv;
}

static int
parse(int argc, char **argv, struct options *o, const char **name,
    struct err *e)
{
	static const struct option longs[] = {
		{ "state", required_argument, NULL, 's' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "upgrade", no_argument, NULL, 'u' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "cert", required_argument, NULL, 'C' },
		{ "chain", required_argument, NULL, 'N' },
		{ "key", required_argument, NULL, 'K' },
		{ "ocsp", required_argument, NULL, 'O' },
		{ "emit", no_argument, NULL, 'E' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t fd;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "s:vh", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o->state = optarg;
			break;
		case 'r':
			if (text_parse_u64("--ready-fd", optarg, 3, 65535, &fd,
				e) == -1)
				return -1;
			o->ready_fd = (int)fd;
			break;
		case 'u':
			o->upgrade = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'C':
			o->check.cert = optarg;
			break;
		case 'N':
			o->check.chain = optarg;
			break;
		case 'K':
			o->check.key = optarg;
			break;
		case 'O':
			o->check.ocsp = optarg;
			break;
		case 'E':
			o->check.emit = true;
			break;
		case 'V':
			*name = "version";
			return 0;
		case 'h':
			*name = "help";
			return 0;
		default:
			return err_set(e, ERR_USAGE,
			    "option '%.40s' is unknown or lacks its value "
			    "(try: "
			    "proxyd help)",
			    argv[optind - 1]);
		}
	}
	if (optind + 1 != argc)
		return err_set(e, ERR_USAGE,
		    optind == argc ?
			"a command is missing (try: proxyd help)" :
			"one command at a time (try: proxyd help)");
	*name = argv[optind];
	return 0;
}

static int
command_run(const struct options *o, struct err *e)
{
	struct master_options m = {
		.ready_fd = o->ready_fd,
		.upgrade = o->upgrade,
		.verbose = o->verbose,
	};

	if (m.ready_fd != -1 && fcntl(m.ready_fd, F_SETFD, FD_CLOEXEC) == -1)
		return err_errno(e, ERR_USAGE, "--ready-fd %d", m.ready_fd);
	if (open_state(o, &m.state, e) == -1)
		return -1;
	return master_run(&m, e);
}

/* The new master writes its pid into the lock file once it serves; the old
 * one counts those that did not. */
static int
command_upgrade(const struct options *o, struct err *e)
{
	pid_t before, now;
	int64_t tried, failed;

	if (running_master(o, &before, e) == -1 ||
	    failed_upgrades(o, &tried, e) == -1)
		return -1;
	if (kill(before, SIGUSR2) == -1)
		return err_errno(e, ERR_DENIED, "cannot signal pid %d",
		    (int)before);
	for (int i = 0; i < UPGRADE_MAX_MS / LOOK_EVERY_MS; i++) {
		usleep(LOOK_EVERY_MS * 1000);
		if (running_master(o, &now, e) == -1)
			return -1;
		if (now != before) {
			printf("pid %d serves; pid %d drains\n", (int)now,
			    (int)before);
			return 0;
		}
		if (failed_upgrades(o, &failed, e) == 0 && failed > tried)
			return err_wrap(e, "pid %d goes on", (int)before);
	}
	return err_set(e, ERR_TIMEOUT, "pid %d still serves after %d s",
	    (int)before, UPGRADE_MAX_MS / 1000);
}

/* How many failed so far; *e is why the last one did. */
static int
failed_upgrades(const struct options *o, int64_t *n, struct err *e)
{
	char run[PATH_MAX], path[PATH_MAX], *text;
	const char *trouble;
	json_t *answer;
	struct state st;
	size_t size;
	int rv = -1;

	if (open_state(o, &st, e) == -1 ||
	    io_path(path, sizeof(path), state_path(&st, STATE_RUN, run),
		ADMIN_SOCKET, e) == -1 ||
	    local_ask(path, "{\"ask\":\"status\"}", SILENCE_S, ANSWER_MAX,
		&text, &size, e) == -1)
		return -1;
	if ((answer = json_parse_object(text, size, ANSWER_MAX, e)) != NULL &&
	    json_get_int(answer, "upgrades_failed", 0, INT64_MAX, n, e) == 0 &&
	    json_get_string(answer, "upgrade_trouble", sizeof(e->text),
		&trouble, e) == 0) {
		err_set(e, ERR_LOCAL, "%s", trouble);
		rv = 0;
	}
	json_decref(answer);
	free(text);
	return rv;
}

static int
command_worker(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	return worker_run();
}

static int
command_opener(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	return opener_run();
}

static int
command_follower(const struct options *o, struct err *e)
{
	struct state st;

	if (open_state(o, &st, e) == -1)
		return -1;
	return follower_run(&st);
}

static int
command_cert_check(const struct options *o, struct err *e)
{
	return cert_check_run(&o->check, e);
}

static int
command_version(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	puts("proxyd " MUSTER_VERSION);
	return 0;
}

static int
command_help(const struct options *o, struct err *e)
{
	(void)o;
	(void)e;
	puts("usage: proxyd [--state DIR] [-v] COMMAND\n");
	for (size_t i = 0; i < nitems(commands); i++)
		if (commands[i].help != NULL)
			printf("  %-10s  %s\n", commands[i].name,
			    commands[i].help);
	puts("\n  --state DIR   the state directory (default $MUSTER_STATE "
	     "or " STATE_DEFAULT_DIR ")\n"
	     "  --ready-fd N  run: write a line to descriptor N once serving\n"
	     "  -v            run: log more\n"
	     "  --cert FILE   cert-check: the certificate, the site's own "
	     "first;\n"
	     "                --chain FILE, --key FILE, --ocsp FILE: what "
	     "belongs to it\n\n"
	     "Settings live in the registry: clusterctl get --all\n"
	     "Example:  clusterctl set proxy.http.listen 0.0.0.0:80\n"
	     "          proxyd run");
	return 0;
}

static int
open_state(const struct options *o, struct state *st, struct err *e)
{
	return state_open(st, state_dir(o->state), e);
}

/* The pid in the lock file, if its lock is held. */
static int
running_master(const struct options *o, pid_t *pid, struct err *e)
{
	char run[PATH_MAX], path[PATH_MAX], text[32];
	struct state st;
	ssize_t n;
	int fd, held;

	if (open_state(o, &st, e) == -1 ||
	    io_path(path, sizeof(path), state_path(&st, STATE_RUN, run),
		"proxyd.lock", e) == -1)
		return -1;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return err_set(e, ERR_UNREACHABLE, "no proxyd runs with %s",
		    st.dir);
	held = flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK;
	n = io_read_n(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	*pid = (pid_t)strtol(text, NULL, 10);
	if (!held || *pid <= 0)
		return err_set(e, ERR_UNREACHABLE, "no proxyd runs with %s",
		    st.dir);
	return 0;
}
