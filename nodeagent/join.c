/* join.c: see join.h. */
#include "nodeagent/join.h"

#include <sys/utsname.h>
#include <sys/wait.h>
#include <ctype.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/net/identity.h"
#include "common/registry/roster.h"
#include "nodeagent/call.h"
#include "nodeagent/options.h"
#include "nodeagent/preflight.h"
#include "nodeagent/view.h"

#define POLL_S	2 /* how often a pending joiner asks */
#define SERVICE "muster-nodeagent"

/* One join, from the token to the running service. */
struct joining {
	const struct options *options;
	struct token token;
	struct state state;
	struct preflight preflight;
	struct event_base *base;
	struct channel_identity identity;
	char hostname[NAME_MAX_LEN + 1];
	struct addr master; /* the token's address that answered */

	/* Of the call under way. */
	json_t *reply;
	struct err why;
	struct roster_intake *intake;
};

static int read_token(const struct options *, struct token *, struct err *);
static void own_hostname(char name[NAME_MAX_LEN + 1]);
static int check(struct joining *, struct err *);
static int enroll(struct joining *, struct err *);
static int ask_until_admitted(struct joining *, struct err *);
static json_t *join_request(const struct joining *, struct err *);
static void wait_for_approval(struct joining *, bool *told);
static int keep_admission(struct joining *, struct err *);
static int fetch_roster(struct joining *, struct err *);
static int already_joined(struct joining *);
static int call(struct joining *, const struct token *, json_t *request,
    const struct call_handlers *, struct err *);
static int call_opened(int64_t skew_ms, void *arg, struct err *);
static int call_file(const uint8_t *, size_t, void *arg, struct err *);
static void call_done(json_t *reply, const struct err *why, int64_t skew_ms,
    void *arg);
static int conclude(struct joining *, struct err *);
static bool service_exists(void);
static int start_service(struct err *);

static const struct call_handlers join_call = {
	.opened = call_opened,
	.done = call_done,
};

static const struct call_handlers roster_call = {
	.file = call_file,
	.done = call_done,
};

int
join_run(const struct options *o, struct err *e)
{
	struct joining j = { .options = o };
	int rv = -1;

	if (read_token(o, &j.token, e) == -1)
		goto out;
	own_hostname(j.hostname);
	if ((j.base = event_base_new()) == NULL) {
		err_set(e, ERR_LOCAL, "cannot make an event loop");
		goto out;
	}
	if (check(&j, e) == 0 && enroll(&j, e) == 0)
		rv = conclude(&j, e);
out:
	secret_wipe(&j.token, sizeof(j.token));
	identity_wipe(&j.identity);
	json_decref(j.reply);
	if (j.base != NULL)
		event_base_free(j.base);
	return rv;
}

/* The token is a secret: it leaves argv before anything else is done. */
static int
read_token(const struct options *o, struct token *t, struct err *e)
{
	char text[TOKEN_TEXT_MAX];
	int rv;

	if (strcmp(o->token, "-") == 0) {
		if (secret_read_line(STDIN_FILENO, "", text, sizeof(text), e) ==
		    -1)
			return -1;
	} else {
		snprintf(text, sizeof(text), "%s", o->token);
		secret_scrub_arg(o->token);
	}
	rv = token_decode(text, t, e);
	secret_wipe(text, sizeof(text));
	return rv;
}

/* The first label, in lower case. */
static void
own_hostname(char name[NAME_MAX_LEN + 1])
{
	struct utsname u;
	size_t n = 0;

	if (uname(&u) == 0)
		for (; n < NAME_MAX_LEN && u.nodename[n] != '\0' &&
		     u.nodename[n] != '.';
		     n++)
			name[n] = (char)tolower((unsigned char)u.nodename[n]);
	name[n] = '\0';
}

static int
check(struct joining *j, struct err *e)
{
	const struct options *o = j->options;
	struct preflight *p = &j->preflight;

	puts("checking this machine:");
	preflight_token(p, &j->token);
	preflight_state(p, state_dir(o->state), &j->state);
	preflight_name(p, o->name, j->hostname);
	if (j->state.dir[0] != '\0') {
		preflight_cluster(p, &j->state, &j->token);
		preflight_port(p, &j->state, o->address);
	}
	preflight_master(p, &j->token);
	return preflight_result(p, e);
}

static int
enroll(struct joining *j, struct err *e)
{
	/* The key is on disk before the master hears of it: whatever happens
	 * from here on, the same line finishes the job. */
	if (identity_key(&j->state, CERT_NODE, &j->identity, e) == -1)
		return -1;
	if (ask_until_admitted(j, e) == -1)
		/* The line is pasted again once everything is done: the
		 * token is used up, and that is fine. */
		return j->preflight.n_failed == 0 && already_joined(j) ? 0 : -1;
	return keep_admission(j, e) == -1 ? -1 : fetch_roster(j, e);
}

/* At the first address that gives an answer, a refusal too. */
static int
ask_until_admitted(struct joining *j, struct err *e)
{
	bool told = false;
	size_t i = 0;

	while (i < j->token.n_addrs) {
		const char *status;

		j->master = j->token.addrs[i];
		if (!j->preflight.reachable[i]) {
			i++;
			continue;
		}
		if (call(j, &j->token, join_request(j, e), &join_call, e) ==
		    -1) {
			if (e->code != ERR_UNREACHABLE &&
			    e->code != ERR_TIMEOUT)
				return -1;
			i++;
			continue;
		}
		if (json_get_string(j->reply, "status", 16, &status, e) == -1)
			return -1;
		if (strcmp(status, "pending") != 0)
			return 0;
		wait_for_approval(j, &told);
	}
	return -1;
}

static json_t *
join_request(const struct joining *j, struct err *e)
{
	const struct options *o = j->options;
	char ip[ADDR_TEXT_MAX];
	struct addr a;
	json_t *r;

	r = json_pack("{s:s, s:s, s:s}", "verb", "join", "version",
	    MUSTER_VERSION, "hostname", j->hostname);
	if (o->name != NULL)
		json_object_set_new(r, "name", json_string(o->name));
	if (o->address != NULL &&
	    addr_parse(o->address, PROTO_DEFAULT_PORT, &a, e) == 0) {
		addr_format_ip(&a, ip);
		json_object_set_new(r, "address", json_string(ip));
		json_object_set_new(r, "port", json_integer(addr_port(&a)));
	}
	return r;
}

static void
wait_for_approval(struct joining *j, bool *told)
{
	char fingerprint[FINGERPRINT_LEN + 1];

	if (!*told) {
		key_fingerprint(j->identity.public, fingerprint);
		printf("waiting for an approval of the key %s\n"
		       "on the master: clusterctl nodes --pending, then "
		       "clusterctl approve %s\n",
		    fingerprint,
		    j->options->name != NULL ? j->options->name : j->hostname);
		fflush(stdout);
	}
	*told = true;
	sleep(POLL_S);
}

static int
keep_admission(struct joining *j, struct err *e)
{
	const char *hex, *text;
	uint8_t authority[KEY_SIZE], bytes[CERT_MAX];
	struct cert c;
	size_t n, size;

	if (json_get_string(j->reply, "authority", 2 * KEY_SIZE, &hex, e) ==
		-1 ||
	    json_get_string(j->reply, "cert", 2 * CERT_MAX, &text, e) == -1)
		return -1;
	if (sodium_hex2bin(authority, sizeof(authority), hex, strlen(hex), NULL,
		&n, NULL) == -1 ||
	    n != KEY_SIZE ||
	    sodium_base642bin(bytes, sizeof(bytes), text, strlen(text), NULL,
		&size, NULL, sodium_base64_VARIANT_ORIGINAL) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "the master's answer is not understood");
	if (cert_verify(bytes, size, authority, j->identity.public,
		clock_wall_ms() / 1000, &c, e) == -1 ||
	    identity_store(&j->state, CERT_NODE, authority, bytes, size, e) ==
		-1)
		return -1;
	return 0;
}

static int
fetch_roster(struct joining *j, struct err *e)
{
	char path[PATH_MAX];
	bool adopted;
	int rv;

	if (identity_load(&j->state, CERT_NODE, clock_wall_ms() / 1000,
		&j->identity, NULL, e) == -1)
		return -1;
	j->intake =
	    roster_intake_new(state_path(&j->state, STATE_ROSTER, path), e);
	if (j->intake == NULL)
		return -1;
	rv = call(j, NULL, json_pack("{s:s}", "verb", "roster"), &roster_call,
	    e);
	if (rv == 0)
		rv = roster_intake_adopt(j->intake, j->identity.authority, NULL,
		    &adopted, e);
	roster_intake_free(j->intake);
	j->intake = NULL;
	return rv;
}

/* Whether the master knows us by a certificate that we have. */
static int
already_joined(struct joining *j)
{
	struct err e;

	return state_has(&j->state, STATE_NODE_CERT) &&
	    fetch_roster(j, &e) == 0;
}

/* One call, to its end.  The answer is in j->reply. */
static int
call(struct joining *j, const struct token *token, json_t *request,
    const struct call_handlers *on, struct err *e)
{
	json_decref(j->reply);
	j->reply = NULL;
	if (call_start(j->base, &j->master, &j->identity, j->token.master_key,
		token, request, on, j, e) == NULL)
		return -1;
	event_base_dispatch(j->base);
	if (j->reply != NULL)
		return 0;
	*e = j->why;
	return -1;
}

static int
call_opened(int64_t skew_ms, void *arg, struct err *e)
{
	struct joining *j = arg;

	return preflight_clock(&j->preflight, skew_ms, e);
}

static int
call_file(const uint8_t *bytes, size_t size, void *arg, struct err *e)
{
	struct joining *j = arg;

	return roster_intake_add(j->intake, bytes, size, e);
}

static void
call_done(json_t *reply, const struct err *why, int64_t skew_ms, void *arg)
{
	struct joining *j = arg;

	(void)skew_ms;
	j->reply = json_incref(reply);
	if (why != NULL)
		j->why = *why;
}

static int
conclude(struct joining *j, struct err *e)
{
	const char *dir = j->state.dir;
	struct view v = { 0 };
	char path[PATH_MAX];
	bool is_default = strcmp(dir, STATE_DEFAULT_DIR) == 0;

	if (view_load(&v, state_path(&j->state, STATE_ROSTER, path),
		j->identity.authority, j->identity.public, e) == -1)
		return -1;
	printf("joined as %s (roles: %s)\n", v.name,
	    v.roles[0] != '\0' ? v.roles : "none yet");
	if (j->preflight.agent_running)
		puts("next: restart the agent that runs, so that it takes "
		     "this up (systemctl restart " SERVICE ")");
	else if (!j->options->no_start && is_default && service_exists()) {
		if (start_service(e) == -1) {
			view_fini(&v);
			return -1;
		}
		printf("the service " SERVICE " runs\n"
		       "next, on the master: clusterctl ping %s\n",
		    v.name);
	} else
		printf("next: nodeagent%s%s run\n",
		    is_default ? "" : " --state ", is_default ? "" : dir);
	view_fini(&v);
	return 0;
}

static bool
service_exists(void)
{
	static const char *const units[] = {
		"/etc/systemd/system/" SERVICE ".service",
		"/usr/local/lib/systemd/system/" SERVICE ".service",
		"/usr/lib/systemd/system/" SERVICE ".service",
		"/lib/systemd/system/" SERVICE ".service",
	};

	if (access("/run/systemd/system", F_OK) == -1)
		return false;
	for (size_t i = 0; i < nitems(units); i++)
		if (access(units[i], F_OK) == 0)
			return true;
	return false;
}

static int
start_service(struct err *e)
{
	static const char *const argv[] = { "systemctl", "enable", "--now",
		SERVICE, NULL };
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL,
		(char *const *)(uintptr_t)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(e, ERR_LOCAL,
		    "this machine has joined, but its service does not start "
		    "(see: systemctl status " SERVICE ")");
	return 0;
}
