/* follower.c: see follower.h. */
#include "proxyd/process/follower.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/process/accounts.h"
#include "proxyd/process/certificates.h"
#include "proxyd/process/compile.h"
#include "proxyd/process/ipc.h"
#include "proxyd/process/scoreboard.h"
#include "proxyd/process/source.h"

#define POLL_MS	     100
#define COMPILE_REST 4	 /* rests so many times as long as it worked ... */
#define REST_MAX_MS  400 /* ... but a change is in force within a second */

struct follower {
	struct source *source;
	struct scoreboard board;
	struct row_use *use;
	struct certificates *certs;
	char default_cert[HOST_MAX_LEN + 1];
	char accounts[PATH_MAX];
	int64_t saved_ms;
	int64_t revision; /* handed over; -1: none */
	char complaint[240], certs_complaint[240];
};

static int receive_scoreboard(struct follower *, bool *fresh, struct err *);
static int follow(struct follower *, struct err *);
static int restore(struct follower *, const struct state *, bool fresh,
    struct err *);
static void save(struct follower *, bool now);
static int hand_over(struct follower *, int64_t revision, struct err *);
static int send_settings(const struct settings *, struct err *);
static int send_certs(struct follower *, struct err *);
static void complain(struct follower *, const struct err *);

int
follower_run(const struct state *st)
{
	struct follower f = { .revision = -1, .board.fd = -1 };
	struct err e;
	int64_t wait_ms = 0;
	bool fresh = false;

	if (nice(10) == -1)
		log_debug("the follower keeps its priority");
	if ((f.source = source_new(st, &e)) == NULL ||
	    (f.certs = certificates_new(st, &e)) == NULL ||
	    receive_scoreboard(&f, &fresh, &e) == -1 ||
	    restore(&f, st, fresh, &e) == -1) {
		if (!ipc_has_ended(IPC_CHILD_FD, 0))
			log_error("%s", e.text);
		return err_exit_status(e.code);
	}
	while (!ipc_has_ended(IPC_CHILD_FD, (int)wait_ms)) {
		int64_t start = clock_mono_ms();

		if (follow(&f, &e) == -1)
			complain(&f, &e);
		else
			row_use_sweep(f.use, f.revision);
		certificates_remind(f.certs, clock_wall_ms() / 1000);
		save(&f, false);
		wait_ms = (clock_mono_ms() - start) * COMPILE_REST;
		if (wait_ms > REST_MAX_MS)
			wait_ms = REST_MAX_MS;
		if (wait_ms < POLL_MS)
			wait_ms = POLL_MS;
	}
	save(&f, true);
	certificates_free(f.certs);
	source_free(f.source);
	row_use_free(f.use);
	return 0;
}

static int
receive_scoreboard(struct follower *f, bool *fresh, struct err *e)
{
	struct ipc_message m;

	if (ipc_recv(IPC_CHILD_FD, &m, e) != 1 || m.type != IPC_SCOREBOARD)
		return err_set(e, ERR_LOCAL, "the follower got no scoreboard");
	*fresh = m.number != 0;
	return scoreboard_map(&f->board, m.fd, e);
}

/* Counters of old are added once, to a scoreboard that is new. */
static int
restore(struct follower *f, const struct state *st, bool fresh, struct err *e)
{
	if ((f->use = row_use_new(&f->board, e)) == NULL ||
	    io_path(f->accounts, sizeof(f->accounts), st->dir, "proxy-accounts",
		e) == -1)
		return -1;
	f->saved_ms = clock_mono_ms();
	if (fresh && accounts_restore(&f->board, f->accounts, e) == -1)
		log_warn("%s", e->text);
	return 0;
}

static void
save(struct follower *f, bool now)
{
	struct err e;

	if (!now && clock_mono_ms() - f->saved_ms < ACCOUNTS_EVERY_MS)
		return;
	f->saved_ms = clock_mono_ms();
	if (accounts_save(&f->board, f->accounts, &e) == -1)
		log_warn("counters of sites: %s", e.text);
}

static int
follow(struct follower *f, struct err *e)
{
	int64_t revision;

	if (source_revision(f->source, &revision, e) == -1)
		return -1;
	if (*f->complaint != '\0')
		log_info("the registry can be read again");
	f->complaint[0] = '\0';
	if (revision == f->revision)
		return certificates_due(f->certs) ? send_certs(f, e) : 0;
	if (hand_over(f, revision, e) == -1)
		return -1;
	f->revision = revision;
	return 0;
}

static int
hand_over(struct follower *f, int64_t revision, struct err *e)
{
	struct settings settings;
	int fd, rv;

	if (compile_snapshot(f->source, &f->board, f->use, revision, &settings,
		&fd, e) == -1)
		return -1;
	memcpy(f->default_cert, settings.default_cert, sizeof(f->default_cert));
	rv = send_settings(&settings, e);
	if (rv == 0)
		rv = send_certs(f, e);
	if (rv == 0)
		rv =
		    ipc_send(IPC_CHILD_FD, IPC_SNAPSHOT, revision, fd, NULL, e);
	close(fd);
	return rv;
}

static int
send_settings(const struct settings *settings, struct err *e)
{
	json_t *o = option_to_json(&settings_table, settings);
	char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
	int rv;

	json_decref(o);
	if (text == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for settings");
	rv = ipc_send(IPC_CHILD_FD, IPC_SETTINGS, 0, -1, text, e);
	free(text);
	return rv;
}

/* Whatever is wrong with certificates, the sites go on with those they had. */
static int
send_certs(struct follower *f, struct err *e)
{
	struct err why = { .text = "" };
	int fd, rv = 0;

	if (certificates_look(f->certs, f->source, f->default_cert, &fd,
		&why) == -1 &&
	    strcmp(f->certs_complaint, why.text) != 0)
		log_warn("certificates: %s; those of before stay in force",
		    why.text);
	memcpy(f->certs_complaint, why.text, sizeof(f->certs_complaint));
	if (fd != -1)
		rv = ipc_send(IPC_CHILD_FD, IPC_CERTS, 0, fd, NULL, e);
	io_close(&fd);
	return rv;
}

/* A fault that lasts is said once; one before the first snapshot goes to the
 * master, which then does not start.  With a master that has gone meanwhile
 * nothing is in force any more. */
static void
complain(struct follower *f, const struct err *why)
{
	struct err e;

	if (strcmp(f->complaint, why->text) == 0 ||
	    ipc_has_ended(IPC_CHILD_FD, 0))
		return;
	memcpy(f->complaint, why->text, sizeof(f->complaint));
	if (f->revision != -1)
		log_warn("%s; the last good settings stay in force", why->text);
	else if (ipc_send(IPC_CHILD_FD, IPC_FAILED, why->code, -1, why->text,
		     &e) == -1 &&
	    e.code != ERR_UNREACHABLE)
		log_error("%s", why->text);
}
