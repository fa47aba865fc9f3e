/*
 * test_channel_peers.c: what strangers, thieves, outsiders and broken peers
 * get from a channel: little, late, and with a reason where one is due.
 */
#include "session.h"

#define SHORT_MS 250

/* Both ends closed, neither was ever open, and both know why. */
static void
expect_refusal(int code, const char *words)
{
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_false(t.client.opened || t.server.opened);
	assert_int_equal(t.client.why, code);
	assert_int_equal(t.server.why, code);
	assert_non_null(strstr(t.client.text, words));
}

/* The client gives up on the server; the server never gets a record. */
static void
expect_mistrust(int code, const char *words)
{
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_false(t.client.opened || t.server.opened);
	assert_int_equal(t.client.why, code);
	assert_non_null(strstr(t.client.text, words));
}

/* ---- clients that are refused ----------------------------------------- */

static void
a_stranger_is_refused(void **state)
{
	uint8_t pub[KEY_SIZE], other[crypto_sign_SECRETKEYBYTES];

	(void)state;
	crypto_sign_keypair(pub, other);
	certify(&t.operator, CERT_OPERATOR, -600, 3600, other);
	connect_both(false);
	expect_refusal(ERR_STRANGER, "not of this cluster");
}

static void
nobody_without_a_certificate(void **state)
{
	(void)state;
	t.operator.cert_size = 0;
	connect_both(false);
	expect_refusal(ERR_STRANGER, "no certificate");
}

/* A certificate is public; without its key it opens nothing. */
static void
a_stolen_certificate_is_refused(void **state)
{
	(void)state;
	crypto_box_keypair(t.operator.public, t.operator.secret);
	connect_both(false);
	expect_refusal(ERR_STRANGER, "another key");
}

static void
expired_and_not_yet_are_told_apart(void **state)
{
	(void)state;
	certify(&t.operator, CERT_OPERATOR, -7200, -600, t.authority_secret);
	connect_both(false);
	expect_refusal(ERR_EXPIRED, "expired at");
	memset(&t.client, 0, sizeof(t.client));
	memset(&t.server, 0, sizeof(t.server));

	certify(&t.operator, CERT_OPERATOR, 600, 7200, t.authority_secret);
	connect_both(false);
	expect_refusal(ERR_NOT_YET, "clocks");
}

static void
a_revoked_operator_is_refused(void **state)
{
	(void)state;
	t.revoked = true;
	connect_both(false);
	expect_refusal(ERR_REVOKED, "ann is revoked");
}

static void
an_unknown_token_is_told_as_such(void **state)
{
	(void)state;
	connect_both(true);
	t.token.id[0] ^= 1; /* what the policy knows, not what was sent */
	expect_refusal(ERR_NO_TARGET, "no such token");
}

static void
a_used_token_is_told_as_such(void **state)
{
	(void)state;
	t.revoked = true;
	connect_both(true);
	expect_refusal(ERR_EXPIRED, "used up");
}

/* Right id, wrong secret: the answer cannot be read. */
static void
a_wrong_token_secret_opens_nothing(void **state)
{
	(void)state;
	connect_both(true);
	t.token.secret[0] ^= 1;
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_false(t.client.opened || t.server.opened);
	assert_int_equal(t.client.why, ERR_PROTOCOL);
	assert_int_equal(t.server.why, ERR_UNREACHABLE);
}

static void
only_masters_take_joins(void **state)
{
	(void)state;
	t.policy.join_psk = NULL;
	connect_both(true);
	expect_refusal(ERR_DENIED, "address of a master");
}

/* ---- servers that are refused ----------------------------------------- */

/* Case H12: before anything of ours is sent that the other can read. */
static void
a_server_with_another_key_learns_nothing(void **state)
{
	(void)state;
	t.token.master_key[0] ^= 1;
	connect_both(false);
	expect_mistrust(ERR_UNREACHABLE, "another key");
	memset(&t.client, 0, sizeof(t.client));
	memset(&t.server, 0, sizeof(t.server));
	connect_both(true);
	expect_mistrust(ERR_UNREACHABLE, "another key");
}

static void
a_server_needs_a_node_s_certificate(void **state)
{
	uint8_t pub[KEY_SIZE], other[crypto_sign_SECRETKEYBYTES];

	(void)state;
	certify(&t.node, CERT_OPERATOR, -600, 3600, t.authority_secret);
	connect_both(false);
	expect_mistrust(ERR_STRANGER, "an operator's, not a node's");
	memset(&t.client, 0, sizeof(t.client));
	memset(&t.server, 0, sizeof(t.server));

	certify(&t.node, CERT_NODE, -7200, -600, t.authority_secret);
	connect_both(false);
	expect_mistrust(ERR_EXPIRED, "the node's certificate is refused");
	memset(&t.client, 0, sizeof(t.client));
	memset(&t.server, 0, sizeof(t.server));

	crypto_sign_keypair(pub, other);
	certify(&t.node, CERT_NODE, -600, 3600, other);
	connect_both(false);
	expect_mistrust(ERR_STRANGER, "the node's certificate is refused");
}

/* ---- outsiders -------------------------------------------------------- */

/* A first flight can be recorded and sent again; the answer is of no use to
 * who does it, and the session never opens. */
static void
a_replayed_first_flight_goes_nowhere(void **state)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX], guess[64];
	size_t size;

	(void)state;
	raw_connect();
	size = raw_offer(offer);
	raw_write_frame(offer, size);
	assert_true(raw_read_frame());
	channel_abort(t.server.channel, NULL);
	RUN_UNTIL(t.server.closed);
	io_close(&t.raw);
	memset(&t.server, 0, sizeof(t.server));

	raw_connect();
	raw_write_frame(offer, size);
	assert_true(raw_read_frame());
	assert_null(channel_peer(t.server.channel));
	assert_null(channel_peer_key(t.server.channel));
	randombytes_buf(guess, sizeof(guess));
	raw_write_frame(guess, sizeof(guess));
	RUN_UNTIL(t.server.closed);
	assert_false(t.server.opened);
	assert_int_equal(t.server.why, ERR_PROTOCOL);
}

static void
versions_without_overlap_are_told(void **state)
{
	uint8_t offer[2 + CERT_MAX] = { 9, 12 }, out[PROTO_HANDSHAKE_MAX];
	struct peer peer;
	struct err e;
	size_t size;

	(void)state;
	raw_connect();
	handshake_client(&t.raw_handshake, &t.operator, t.node.public);
	memcpy(offer + 2, t.operator.cert, t.operator.cert_size);
	out[0] = NOISE_IK;
	assert_int_equal(noise_write(&t.raw_handshake.noise, offer,
			     2 + t.operator.cert_size, out + 1, sizeof(out) - 1,
			     &size, &e),
	    0);
	raw_write_frame(out, size + 1);
	assert_true(raw_read_frame());
	assert_int_equal(handshake_conclude(&t.raw_handshake,
			     t.frame + FRAME_HEAD_SIZE,
			     t.frame_size - FRAME_HEAD_SIZE, 0, &peer, &e),
	    -1);
	assert_int_equal(e.code, ERR_VERSION);
	assert_non_null(strstr(e.text, "speaks protocol 1 to 1"));
	assert_non_null(strstr(e.text, "9 to 12"));
	/* The server says goodbye behind its answer, and means it. */
	assert_false(raw_read_frame());
	io_close(&t.raw);
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.why, ERR_VERSION);
}

/* Sends bytes instead of a handshake and expects to be cut off unheard. */
static void
expect_cut(const void *bytes, size_t size)
{
	memset(&t.server, 0, sizeof(t.server));
	raw_connect();
	raw_write(bytes, size);
	assert_false(raw_read_frame());
	assert_int_equal(t.frame_size, 0);
	RUN_UNTIL(t.server.closed);
	assert_false(t.server.opened);
	assert_int_equal(t.server.why, ERR_PROTOCOL);
	io_close(&t.raw);
}

static void
lengths_are_judged_before_the_rest_comes(void **state)
{
	(void)state;
	expect_cut("\x08\x01", 2); /* 2049 */
	expect_cut("\xff\xff", 2);
	expect_cut("\0\0", 2);
	expect_cut("GET / HTTP/1.1\r\n\r\n", 18);
	expect_cut("SSH-2.0-OpenSSH\r\n", 17);
}

static void
garbage_gets_no_answer(void **state)
{
	uint8_t frame[FRAME_HEAD_SIZE + PROTO_HANDSHAKE_MAX];

	(void)state;
	randombytes_buf(frame, sizeof(frame));
	frame_put_head(frame, PROTO_HANDSHAKE_MAX);
	for (uint8_t pattern = 0; pattern < 4; pattern++) {
		frame[2] = pattern;
		expect_cut(frame, sizeof(frame));
	}
	expect_cut("\0\1\0", 3);
	expect_cut("\0\1\1", 3);
}

static void
an_early_leaver_is_noticed(void **state)
{
	(void)state;
	raw_connect();
	raw_write("\0", 1);
	io_close(&t.raw);
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.why, ERR_UNREACHABLE);
}

/* The limit counts from the connection on: who sends a byte now and then
 * gains nothing. */
static void
a_half_open_session_ends(void **state)
{
	uint8_t offer[PROTO_HANDSHAKE_MAX];
	size_t size = raw_offer(offer), sent = 0;

	(void)state;
	t.policy.handshake_ms = SHORT_MS;
	raw_connect();
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.why, ERR_TIMEOUT);
	io_close(&t.raw);
	memset(&t.server, 0, sizeof(t.server));

	raw_connect();
	raw_write("\5\0", 2);
	for (int64_t last = 0; !t.server.closed;) {
		if (clock_mono_ms() != last &&
		    send(t.raw, offer + sent, 1, MSG_NOSIGNAL) == 1)
			sent++;
		last = clock_mono_ms();
		event_base_loop(t.base, EVLOOP_ONCE);
	}
	assert_int_equal(t.server.why, ERR_TIMEOUT);
	assert_true(sent < size);
	io_close(&t.raw);
	memset(&t.server, 0, sizeof(t.server));

	/* Nor does who stops behind a good first message. */
	raw_connect();
	raw_write_frame(offer, size);
	assert_true(raw_read_frame());
	/* It is told: a client would know that its order was not taken. */
	assert_true(raw_read_frame());
	io_close(&t.raw);
	RUN_UNTIL(t.server.closed);
	assert_false(t.server.opened);
	assert_int_equal(t.server.why, ERR_LATE);
}

/* ---- broken sessions -------------------------------------------------- */

/* Opens by hand with a good record, then sends one message and expects the
 * end of the session. */
static void
expect_end(const uint8_t *message, size_t size)
{
	RUN_UNTIL(t.server.n_records == 1);
	raw_write_frame(message, size);
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.n_records, 1);
	assert_int_equal(t.server.why, ERR_PROTOCOL);
	io_close(&t.raw);
	memset(&t.server, 0, sizeof(t.server));
}

static void
tampering_repeating_and_reordering_end_the_session(void **state)
{
	uint8_t first[64], second[64], third[64];
	size_t size;

	(void)state;
	raw_open();
	size = raw_seal(first, REC_STDIN, 20);
	raw_write_frame(first, size);
	raw_seal(second, REC_STDIN, 20);
	second[5] ^= 1;
	expect_end(second, size);

	raw_open();
	raw_seal(first, REC_STDIN, 20);
	raw_write_frame(first, size);
	expect_end(first, size);

	raw_open();
	raw_seal(first, REC_STDIN, 20);
	raw_seal(second, REC_STDIN, 20);
	raw_seal(third, REC_STDIN, 20);
	raw_write_frame(first, size);
	expect_end(third, size);

	/* Cut: the tag is gone. */
	raw_open();
	raw_seal(first, REC_STDIN, 20);
	raw_write_frame(first, size);
	raw_seal(second, REC_STDIN, 20);
	expect_end(second, 15);
}

static void
records_off_the_table_end_the_session(void **state)
{
	static const struct {
		unsigned type;
		size_t size;
	} bad[] = {
		{ 0, 5 },
		{ REC_N_TYPES, 5 },
		{ 255, 5 },
		{ REC_REPLY, 5 },  /* a server's */
		{ REC_STDOUT, 5 }, /* a server's */
		{ REC_SIGNAL, 0 },
		{ REC_SIGNAL, 2 },
		{ REC_RESIZE, 3 },
		{ REC_EOF, 1 },
		{ REC_STDIN, 0 },
		{ REC_PING, 65 },
	};
	uint8_t first[64], second[128];
	struct err e;

	(void)state;
	for (size_t i = 0; i < nitems(bad); i++) {
		raw_open();
		raw_write_frame(first, raw_seal(first, REC_STDIN, 20));
		expect_end(second, raw_seal(second, bad[i].type, bad[i].size));
	}
	raw_open();
	raw_write_frame(first, raw_seal(first, REC_STDIN, 20));
	assert_int_equal(noise_seal(&t.raw_send, second, 0, &e), 0);
	expect_end(second, NOISE_TAG_SIZE);
}

/* An unproven peer's first record has the small limit; the proven one's
 * second does not. */
static void
the_first_record_is_short(void **state)
{
	static uint8_t record[PROTO_FRAME_MAX];
	size_t size;

	(void)state;
	raw_open();
	raw_write("\x08\x01", 2);
	RUN_UNTIL(t.server.closed);
	assert_false(t.server.opened);
	assert_int_equal(t.server.why, ERR_PROTOCOL);
	io_close(&t.raw);
	memset(&t.server, 0, sizeof(t.server));

	raw_open();
	raw_write_frame(record, raw_seal(record, REC_PING, 0));
	size = raw_seal(record, REC_STDIN, PROTO_RECORD_MAX);
	assert_int_equal(size, PROTO_FRAME_MAX);
	raw_write_frame(record, size);
	RUN_UNTIL(t.server.n_records == 1);
	assert_int_equal(t.server.last_size, PROTO_RECORD_MAX);
}

static void
half_a_record_and_gone(void **state)
{
	uint8_t record[64];

	(void)state;
	raw_open();
	raw_write_frame(record, raw_seal(record, REC_STDIN, 20));
	RUN_UNTIL(t.server.n_records == 1);
	raw_write("\0\x30"
		  "half",
	    6);
	io_close(&t.raw);
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.why, ERR_UNREACHABLE);
}

/* Who asks for echoes and never reads them does not fill our memory. */
static void
a_flood_of_pings_is_bounded(void **state)
{
	uint8_t record[128];

	(void)state;
	raw_open();
	for (int i = 0; i < 20000; i++) {
		uint8_t head[FRAME_HEAD_SIZE];
		size_t size = raw_seal(record, REC_PING, 64);

		frame_put_head(head, size);
		RUN_UNTIL(send(t.raw, head, 2, MSG_NOSIGNAL) == 2);
		RUN_UNTIL(
		    send(t.raw, record, size, MSG_NOSIGNAL) == (ssize_t)size);
		if (t.server.channel != NULL)
			assert_true(channel_queued(t.server.channel) <=
			    CHANNEL_HIGH_WATER + 128);
	}
	assert_false(t.server.closed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(a_stranger_is_refused),
		SESSION_TEST(nobody_without_a_certificate),
		SESSION_TEST(a_stolen_certificate_is_refused),
		SESSION_TEST(expired_and_not_yet_are_told_apart),
		SESSION_TEST(a_revoked_operator_is_refused),
		SESSION_TEST(an_unknown_token_is_told_as_such),
		SESSION_TEST(a_used_token_is_told_as_such),
		SESSION_TEST(a_wrong_token_secret_opens_nothing),
		SESSION_TEST(only_masters_take_joins),
		SESSION_TEST(a_server_with_another_key_learns_nothing),
		SESSION_TEST(a_server_needs_a_node_s_certificate),
		SESSION_TEST(a_replayed_first_flight_goes_nowhere),
		SESSION_TEST(versions_without_overlap_are_told),
		SESSION_TEST(lengths_are_judged_before_the_rest_comes),
		SESSION_TEST(garbage_gets_no_answer),
		SESSION_TEST(an_early_leaver_is_noticed),
		SESSION_TEST(a_half_open_session_ends),
		SESSION_TEST(
		    tampering_repeating_and_reordering_end_the_session),
		SESSION_TEST(records_off_the_table_end_the_session),
		SESSION_TEST(the_first_record_is_short),
		SESSION_TEST(half_a_record_and_gone),
		SESSION_TEST(a_flood_of_pings_is_bounded),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests_name("channel peers", tests, NULL, NULL);
}
