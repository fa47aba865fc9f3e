/*
 * agent_call.c: speaks the service protocol to one agent, for tests that
 * clusterctl cannot make: any verb, any certificate, any manners.
 *
 *   agent_call [options] STATE NODE REQUEST...
 *
 * Sends each REQUEST (JSON) after the answer to the one before, and prints
 * each record as a line of JSON: {"record","json"} or {"record","data"}, with
 * "size" in place of bytes that are no UTF-8.  NODE is a name in the roster of STATE, or
 * NAME@IP:PORT to call it elsewhere.
 *
 *   -a node|operator    whose certificate (default: operator)
 *   -m KIND,GRANTS,TTL  one of our own making, signed with the authority key
 *                       of STATE; grants split by '+', ttl in seconds
 *   -s                  that, signed by an authority of our own
 *   -i                  sends standard input as STDIN or FILE records, then
 *                       EOF
 *   -f N                sends N bytes of STDIN instead
 *   -t                  reads nothing after the first output record
 *   -g N                sends SIGNAL N once the first output came
 */
#include <sys/socket.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/io.h"
#include "common/base/secret.h"
#include "common/net/authority.h"
#include "common/net/channel.h"
#include "common/net/identity.h"
#include "common/registry/roster.h"

static struct {
	const char *as, *mint;
	bool stranger, input, stall;
	int signal;
	uint64_t feed;
	char **requests; /* ends with NULL */
	bool file;	 /* the input goes out as FILE records */
	bool answered;
	struct channel *channel;
} call = { .as = "operator" };

static void parse(int argc, char **argv, struct state *);
static void load_identity(const struct state *, struct channel_identity *);
static void mint(const struct state *, struct channel_identity *);
static void find_node(const struct state *, const char *name,
    struct channel_identity *, struct node *);
static void opened(struct channel *, void *);
static void record(struct channel *, enum record_type, const uint8_t *, size_t,
    void *);
static void drained(struct channel *, void *);
static void closed(struct channel *, const struct err *, void *);
static void send_next(void);
static void send_input(void);
static void show(const char *record, const char *field, json_t *value);
static _Noreturn void die(const struct err *);

int
main(int argc, char **argv)
{
	static const struct channel_handlers handlers = { opened, record,
		drained, closed };
	struct channel_identity id;
	struct event_base *base;
	struct state state;
	struct node node;
	char *name, *at;
	struct addr to;
	struct err e;

	daemon_prepare();
	if (secret_init(&e) == -1)
		die(&e);
	parse(argc, argv, &state);
	load_identity(&state, &id);
	name = argv[optind + 1];
	if ((at = strchr(name, '@')) != NULL)
		*at++ = '\0';
	find_node(&state, name, &id, &node);
	if (call.mint != NULL)
		mint(&state, &id);
	call.requests = argv + optind + 2;
	base = event_base_new();
	if (addr_parse(at != NULL ? at : node.addr, node.agent_port, &to, &e) ==
	    -1)
		die(&e);
	call.channel = channel_connect(base, &to, &id, node.key, 5000,
	    &handlers, NULL, &e);
	if (call.channel == NULL)
		die(&e);
	event_base_dispatch(base);
	event_base_free(base);
	return call.answered ? 0 : 1;
}

static void
parse(int argc, char **argv, struct state *state)
{
	struct err e;
	int c;

	while ((c = getopt(argc, argv, "+a:m:sif:tg:")) != -1)
		switch (c) {
		case 'a':
			call.as = optarg;
			break;
		case 'm':
			call.mint = optarg;
			break;
		case 's':
			call.stranger = true;
			break;
		case 'i':
			call.input = true;
			break;
		case 'f':
			call.feed = strtoull(optarg, NULL, 10);
			break;
		case 't':
			call.stall = true;
			break;
		case 'g':
			call.signal = (int)strtol(optarg, NULL, 10);
			break;
		default:
			exit(2);
		}
	if (argc - optind < 3) {
		fprintf(stderr, "usage: agent_call STATE NODE REQUEST...\n");
		exit(2);
	}
	if (state_open(state, argv[optind], &e) == -1)
		die(&e);
}

static void
load_identity(const struct state *state, struct channel_identity *id)
{
	struct err e;

	if (identity_load(state,
		strcmp(call.as, "node") == 0 ? CERT_NODE : CERT_OPERATOR,
		clock_wall_ms() / 1000, id, NULL, &e) == -1 &&
	    call.mint == NULL)
		die(&e);
}

static void
mint(const struct state *state, struct channel_identity *id)
{
	uint8_t secret[AUTHORITY_SECRET_SIZE], public[KEY_SIZE];
	struct cert c = { .name = "minted" };
	char copy[512], *kind, *grants, *ttl, *save = NULL;
	struct err e;

	snprintf(copy, sizeof(copy), "%s", call.mint);
	kind = strtok_r(copy, ",", &save);
	grants = strtok_r(NULL, ",", &save);
	ttl = strtok_r(NULL, ",", &save);
	crypto_box_keypair(id->public, id->secret);
	memcpy(c.key, id->public, KEY_SIZE);
	c.kind = strcmp(kind, "node") == 0 ? CERT_NODE : CERT_OPERATOR;
	randombytes_buf(&c.serial, sizeof(c.serial));
	c.serial >>= 2;
	c.not_after_s = clock_wall_ms() / 1000 + atoll(ttl);
	c.not_before_s = c.not_after_s - 86400;
	save = NULL;
	for (char *g = strtok_r(grants, "+", &save); g != NULL;
	     g = strtok_r(NULL, "+", &save))
		snprintf(c.grants[c.n_grants++], sizeof(c.grants[0]), "%s", g);
	if (call.stranger)
		authority_generate(secret, public);
	else if (authority_load(state, NULL, secret, &e) == -1)
		die(&e);
	if (cert_sign(&c, secret, id->cert, &id->cert_size, &e) == -1)
		die(&e);
}

static void
find_node(const struct state *state, const char *name,
    struct channel_identity *id, struct node *node)
{
	char path[PATH_MAX];
	struct roster *r;
	struct err e;

	if (authority_load_public(state, id->authority, &e) == -1 ||
	    (r = roster_open(state_path(state, STATE_ROSTER, path),
		 id->authority, &e)) == NULL ||
	    roster_get_node(r, name, node, &e) == -1)
		die(&e);
	roster_close(r);
}

static void
opened(struct channel *ch, void *arg)
{
	(void)ch;
	(void)arg;
	send_next();
}

static void
record(struct channel *ch, enum record_type type, const uint8_t *body,
    size_t size, void *arg)
{
	static const char *const names[REC_N_TYPES] = { [REC_REPLY] = "reply",
		[REC_ERROR] = "error",
		[REC_STDOUT] = "stdout",
		[REC_STDERR] = "stderr",
		[REC_FILE] = "file",
		[REC_EXIT] = "exit" };
	bool ends = type == REC_REPLY || type == REC_ERROR || type == REC_EXIT;
	uint8_t sig = (uint8_t)call.signal;
	json_t *data;
	struct err e;

	(void)arg;
	if (type == REC_TAKEN)
		return;
	if (ends)
		show(names[type], "json",
		    json_loadb((const char *)body, size, 0, NULL));
	else if ((data = json_stringn((const char *)body, size)) != NULL)
		show(names[type], "data", data);
	else
		show(names[type], "size", json_integer((json_int_t)size));
	if (ends) {
		call.answered = true;
		send_next();
		return;
	}
	if (call.stall)
		channel_pause(ch);
	if (call.signal != 0 && channel_send(ch, REC_SIGNAL, &sig, 1, &e) == -1)
		die(&e);
	call.signal = 0;
}

static void
drained(struct channel *ch, void *arg)
{
	(void)ch;
	(void)arg;
	send_input();
}

static void
closed(struct channel *ch, const struct err *why, void *arg)
{
	(void)ch;
	(void)arg;
	show("closed", "json",
	    why == NULL ? json_null() :
			  json_pack("{s:s, s:s}", "word", err_word(why->code),
			      "text", why->text));
}

static void
send_next(void)
{
	json_t *request;
	struct err e;

	if (*call.requests == NULL) {
		channel_close(call.channel);
		return;
	}
	request = json_loads(*call.requests++, 0, NULL);
	call.file = json_object_get(request, "path") != NULL;
	if (channel_send_json(call.channel, REC_REQUEST, request, &e) == -1)
		die(&e);
	send_input();
}

static void
send_input(void)
{
	static uint8_t buf[32768];
	struct err e;
	ssize_t n;

	while ((call.input || call.feed > 0) &&
	    channel_queued(call.channel) < CHANNEL_HIGH_WATER) {
		n = call.input ? io_read_n(STDIN_FILENO, buf, sizeof(buf)) :
				 (ssize_t)sizeof(buf);
		if (n <= 0) {
			call.input = false;
			if (channel_send(call.channel, REC_EOF, NULL, 0, &e) ==
			    -1)
				die(&e);
			return;
		}
		if (call.feed > 0)
			call.feed -=
			    call.feed < (uint64_t)n ? call.feed : (uint64_t)n;
		if (channel_send(call.channel, call.file ? REC_FILE : REC_STDIN,
			buf, (size_t)n, &e) == -1)
			die(&e);
	}
}

static void
show(const char *name, const char *field, json_t *value)
{
	json_t *line = json_pack("{s:s, s:o*}", "record", name, field, value);

	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

static _Noreturn void
die(const struct err *e)
{
	fprintf(stderr, "agent_call: %s\n", e->text);
	exit(8);
}
