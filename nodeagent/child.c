/* child.c: see child.h. */
#include "nodeagent/child.h"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/net/proto.h"
#include "nodeagent/cgroup.h"

#define REPORT_FD 3 /* in the child; close-on-exec */
#define DEFAULT_PATH \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* As in shells: what could not be found, and what could not be run. */
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Both ends of every pipe of a child being made. */
struct ends {
	int in[2], out[2], err[2], report[2]; /* [0] reads, [1] writes */
};

static struct rlimit saved_files, saved_core;

static int open_ends(const struct child_spec *, struct ends *, struct err *);
static int open_pipe(int pair[2], int our_end, struct err *);
static int open_pty(const struct child_pty *, struct ends *, struct err *);
static void close_ends(struct ends *);
static void hand_over(struct ends *, struct child *);
static _Noreturn void be_child(const struct child_spec *, struct ends *,
    pid_t agent);
static void place_descriptors(const struct child_spec *, const struct ends *);
static int set_up(const struct child_spec *, pid_t agent, struct err *);
static int become(const struct passwd *, struct err *);
static int set_environment(const struct child_spec *, const struct passwd *,
    struct err *);
static int enter_directory(const struct child_spec *, const struct passwd *,
    struct err *);
static _Noreturn void run(const struct child_spec *);
static _Noreturn void report_failure(const struct err *);

void
child_save_limits(void)
{
	getrlimit(RLIMIT_NOFILE, &saved_files);
	getrlimit(RLIMIT_CORE, &saved_core);
}

int
child_start(const struct child_spec *spec, struct child *c, struct err *e)
{
	struct ends ends;
	sigset_t all, old;
	pid_t agent = getpid(), pid;

	if (open_ends(spec, &ends, e) == -1)
		return -1;
	/* No handler of the agent may run in the child's copy of it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	if ((pid = fork()) == 0)
		be_child(spec, &ends, agent);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid == -1) {
		err_errno(e, ERR_LOCAL, "cannot start a process");
		close_ends(&ends);
		return -1;
	}
	c->pid = pid;
	hand_over(&ends, c);
	return 0;
}

static int
open_ends(const struct child_spec *spec, struct ends *ends, struct err *e)
{
	int rv;

	memset(ends, 0xff, sizeof(*ends)); /* every one -1 */
	if (spec->pty != NULL)
		rv = open_pty(spec->pty, ends, e);
	else if (open_pipe(ends->in, 1, e) == -1 ||
	    open_pipe(ends->out, 0, e) == -1)
		rv = -1;
	else
		rv = spec->call != NULL ? 0 : open_pipe(ends->err, 0, e);
	if (rv == 0 && open_pipe(ends->report, 0, e) == 0)
		return 0;
	close_ends(ends);
	return -1;
}

static int
open_pipe(int pair[2], int our_end, struct err *e)
{
	if (pipe2(pair, O_CLOEXEC) == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a pipe");
	/* Ours alone: the child's end stays as commands expect it. */
	if (fcntl(pair[our_end], F_SETFL, O_NONBLOCK) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set up a pipe");
	return 0;
}

static int
open_pty(const struct child_pty *pty, struct ends *ends, struct err *e)
{
	struct winsize size = { .ws_row = pty->rows, .ws_col = pty->columns };
	int master, slave;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master == -1)
		return err_errno(e, ERR_LOCAL, "cannot open a terminal");
	ends->out[0] = master;
	if (grantpt(master) == -1 || unlockpt(master) == -1 ||
	    (slave = ioctl(master, TIOCGPTPEER,
		 O_RDWR | O_NOCTTY | O_CLOEXEC)) == -1)
		return err_errno(e, ERR_LOCAL, "cannot open a terminal");
	ends->in[0] = slave;
	if (ioctl(master, TIOCSWINSZ, &size) == -1 ||
	    (ends->out[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3)) == -1 ||
	    (ends->in[1] = fcntl(master, F_DUPFD_CLOEXEC, 3)) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set up a terminal");
	return 0;
}

static void
close_ends(struct ends *ends)
{
	for (int i = 0; i < 2; i++) {
		io_close(&ends->in[i]);
		io_close(&ends->out[i]);
		io_close(&ends->err[i]);
		io_close(&ends->report[i]);
	}
}

/* Our ends move to *c, the child's are closed. */
static void
hand_over(struct ends *ends, struct child *c)
{
	c->in = ends->in[1];
	c->out = ends->out[0];
	c->err = ends->err[0];
	c->report = ends->report[0];
	ends->in[1] = ends->out[0] = ends->err[0] = ends->report[0] = -1;
	close_ends(ends);
}

static _Noreturn void
be_child(const struct child_spec *spec, struct ends *ends, pid_t agent)
{
	struct err e;

	setsid();
	cgroup_enter(spec->cgroup);
	place_descriptors(spec, ends);
	daemon_child_signals();
	if (set_up(spec, agent, &e) == -1)
		report_failure(&e);
	run(spec);
}

static void
place_descriptors(const struct child_spec *spec, const struct ends *ends)
{
	dup2(ends->in[0], STDIN_FILENO);
	dup2(ends->out[1], STDOUT_FILENO);
	if (spec->pty != NULL) {
		dup2(ends->out[1], STDERR_FILENO);
		ioctl(STDIN_FILENO, TIOCSCTTY, 0);
	} else if (spec->call == NULL)
		dup2(ends->err[1], STDERR_FILENO);
	if (ends->report[1] != REPORT_FD)
		dup3(ends->report[1], REPORT_FD, O_CLOEXEC);
	close_range(REPORT_FD + 1, ~0U, 0);
}

static int
set_up(const struct child_spec *spec, pid_t agent, struct err *e)
{
	struct passwd *pw;

	if (spec->call == NULL) {
		setrlimit(RLIMIT_NOFILE, &saved_files);
		setrlimit(RLIMIT_CORE, &saved_core);
		umask(022);
		errno = 0;
		pw = spec->user != NULL ? getpwnam(spec->user) :
					  getpwuid(geteuid());
		if (pw == NULL && spec->user != NULL)
			return err_set(e, ERR_USAGE,
			    "there is no user %s on this node", spec->user);
		if ((spec->user != NULL && become(pw, e) == -1) ||
		    set_environment(spec, pw, e) == -1 ||
		    enter_directory(spec, pw, e) == -1)
			return -1;
	}
	/* After become(): a change of user clears it. */
	if (!spec->keep) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != agent)
			_exit(EXIT_NOT_RUN); /* it died before that */
	}
	return 0;
}

static int
become(const struct passwd *pw, struct err *e)
{
	uid_t r, eff, saved;

	if (pw->pw_uid == geteuid() && geteuid() != 0)
		return 0;
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		return err_errno(e, ERR_LOCAL, "cannot become user %s",
		    pw->pw_name);
	if (getresuid(&r, &eff, &saved) == -1 || r != pw->pw_uid ||
	    eff != pw->pw_uid || saved != pw->pw_uid ||
	    (pw->pw_uid != 0 && setuid(0) == 0))
		return err_set(e, ERR_LOCAL,
		    "could not give up the agent's rights for user %s",
		    pw->pw_name);
	return 0;
}

static int
set_environment(const struct child_spec *spec, const struct passwd *pw,
    struct err *e)
{
	const char *lang = getenv("LANG");
	const struct {
		const char *name, *value;
	} base[] = {
		{ "PATH", DEFAULT_PATH },
		{ "HOME", pw != NULL ? pw->pw_dir : "/" },
		{ "USER", pw != NULL ? pw->pw_name : "unknown" },
		{ "LOGNAME", pw != NULL ? pw->pw_name : "unknown" },
		{ "SHELL", pw != NULL ? pw->pw_shell : "/bin/sh" },
		{ "LANG", lang != NULL ? lang : "C.UTF-8" },
		{ "MUSTER_NODE", spec->node },
		{ "MUSTER_ROLES", spec->roles },
		{ CHILD_ORDER, spec->order },
		{ "TERM", spec->pty ? spec->pty->term : NULL },
	};
	static char *none[] = { NULL };

	environ = none;
	for (size_t i = 0; i < nitems(base); i++)
		if (base[i].value != NULL &&
		    setenv(base[i].name, base[i].value, 1) == -1)
			return err_set(e, ERR_LOCAL,
			    "no memory for the environment");
	for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++)
		if (putenv((char *)(uintptr_t)spec->env[i]) != 0)
			return err_set(e, ERR_LOCAL,
			    "no memory for the environment");
	return 0;
}

static int
enter_directory(const struct child_spec *spec, const struct passwd *pw,
    struct err *e)
{
	if (spec->cwd != NULL) {
		if (chdir(spec->cwd) == -1)
			return err_errno(e, ERR_USAGE,
			    "cannot enter directory %s", spec->cwd);
		return 0;
	}
	/* A user without a home still gets the command run, as login does. */
	if ((pw == NULL || chdir(pw->pw_dir) == -1) && chdir("/") == -1)
		return err_errno(e, ERR_LOCAL, "cannot enter /");
	return 0;
}

static _Noreturn void
run(const struct child_spec *spec)
{
	const char *const shell[] = { "sh", "-c", "--", spec->shell, NULL };
	const char *name;

	if (spec->call != NULL)
		_exit(spec->call(spec->call_arg, REPORT_FD));
	if (spec->shell != NULL) {
		name = "/bin/sh";
		execv(name, (char *const *)(uintptr_t)shell);
	} else {
		name = spec->argv[0];
		execvp(name, (char *const *)(uintptr_t)spec->argv);
	}
	if (errno == ENOENT && strchr(name, '/') == NULL) {
		dprintf(STDERR_FILENO, "nodeagent: %s: command not found\n",
		    name);
		_exit(EXIT_NOT_FOUND);
	}
	dprintf(STDERR_FILENO, "nodeagent: cannot run %s: %s\n", name,
	    strerror(errno));
	_exit(errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND :
						    EXIT_NOT_RUN);
}

static _Noreturn void
report_failure(const struct err *e)
{
	char report[PROTO_ERROR_MAX];
	size_t size = proto_format_error(e, report);

	io_write_n(REPORT_FD, report, size);
	_exit(EXIT_NOT_RUN);
}
