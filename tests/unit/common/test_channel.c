/*
 * test_channel.c: good sessions: records both ways, back pressure, pauses,
 * and every way to end.  What bad peers get: test_channel_peers.c.
 */
#include "session.h"

#define MANY 300

static void
a_session_opens_talks_and_closes(void **state)
{
	(void)state;
	open_both();
	assert_string_equal(t.client.peer.name, "web01");
	assert_string_equal(t.server.peer.name, "ann");
	assert_memory_equal(channel_peer_key(t.server.channel),
	    t.operator.public, KEY_SIZE);
	assert_true(llabs(t.client.skew_ms) < 2000);
	assert_null(channel_join_id(t.server.channel));
	assert_false(channel_is_lost(t.server.channel));
	t.server.echo = true;
	send_text(&t.client, REC_STDIN, "hello");
	RUN_UNTIL(t.client.n_records == 1);
	assert_int_equal(t.client.last_type, REC_STDOUT);
	assert_memory_equal(t.client.last, "hello", 5);
	assert_int_equal(channel_bytes_in(t.client.channel),
	    channel_bytes_out(t.server.channel));
	channel_close(t.client.channel);
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_int_equal(t.client.why, ERR_NONE);
	assert_int_equal(t.server.why, ERR_NONE);
}

static void
a_joiner_is_known_by_its_token(void **state)
{
	(void)state;
	t.operator.cert_size = 0;
	connect_both(true);
	RUN_UNTIL(t.client.opened);
	send_text(&t.client, REC_REQUEST, "{}");
	RUN_UNTIL(t.server.n_records == 1);
	assert_true(t.server.joins && t.client.opened);
	assert_null(channel_peer(t.server.channel));
	assert_memory_equal(channel_join_id(t.server.channel), t.token.id,
	    TOKEN_ID_SIZE);
	assert_memory_equal(channel_peer_key(t.server.channel),
	    t.operator.public, KEY_SIZE);
	assert_null(channel_join_id(t.client.channel));
}

/* What the socket takes at once need not wait for the next. */
static void
small_records_leave_in_one_write(void **state)
{
	uint8_t record[512];
	size_t seen, n = 0;

	(void)state;
	raw_open();
	raw_write_frame(record, raw_seal(record, REC_REQUEST, 8));
	RUN_UNTIL(t.server.n_records == 1);
	for (int i = 0; i < 10; i++)
		send_text(&t.server, REC_STDOUT, "0123456789");
	seen = channel_queued(t.server.channel);
	assert_int_equal(seen, 10 * (2 + 1 + 10 + 16));
	event_base_loop(t.base, EVLOOP_NONBLOCK);
	assert_int_equal(channel_queued(t.server.channel), 0);
	while (n < seen) {
		ssize_t r = recv(t.raw, t.frame, sizeof(t.frame), 0);

		assert_true(r > 0);
		n += (size_t)r;
	}
}

static void
bytes_may_come_one_by_one(void **state)
{
	uint8_t offer[FRAME_HEAD_SIZE + PROTO_HANDSHAKE_MAX], record[64];
	struct peer peer;
	struct err e;
	size_t n;

	(void)state;
	raw_connect();
	n = raw_offer(offer + FRAME_HEAD_SIZE);
	frame_put_head(offer, n);
	for (size_t i = 0; i < n + FRAME_HEAD_SIZE; i++) {
		raw_write(offer + i, 1);
		event_base_loop(t.base, EVLOOP_NONBLOCK);
	}
	assert_true(raw_read_frame());
	assert_int_equal(handshake_conclude(&t.raw_handshake,
			     t.frame + FRAME_HEAD_SIZE,
			     t.frame_size - FRAME_HEAD_SIZE, clock_wall_ms(),
			     &peer, &e),
	    0);
	handshake_split(&t.raw_handshake, &t.raw_send, &t.raw_receive);
	n = raw_seal(record + FRAME_HEAD_SIZE, REC_REQUEST, 20);
	frame_put_head(record, n);
	for (size_t i = 0; i < n + FRAME_HEAD_SIZE; i++) {
		assert_int_equal(t.server.n_records, 0);
		raw_write(record + i, 1);
		event_base_loop(t.base, EVLOOP_NONBLOCK);
	}
	RUN_UNTIL(t.server.n_records == 1);
	assert_int_equal(t.server.last_size, 20);
}

/* Case H5: one limit for both sides. */
static void
the_longest_record_passes_and_no_longer_one(void **state)
{
	static uint8_t body[PROTO_RECORD_MAX + 1];
	struct err e;

	(void)state;
	open_both();
	t.server.echo = true;
	randombytes_buf(body, sizeof(body));
	assert_int_equal(channel_send(t.client.channel, REC_STDIN, body,
			     PROTO_RECORD_MAX + 1, &e),
	    -1);
	assert_int_equal(e.code, ERR_PROTOCOL);
	assert_int_equal(channel_send(t.client.channel, REC_STDIN, body,
			     PROTO_RECORD_MAX, &e),
	    0);
	RUN_UNTIL(t.client.n_records == 1);
	assert_int_equal(t.client.last_size, PROTO_RECORD_MAX);
	assert_memory_equal(t.client.last, body, PROTO_RECORD_MAX);
}

/* It is longer than what an unproven peer may send. */
static void
the_first_record_may_be_the_longest(void **state)
{
	static uint8_t body[PROTO_RECORD_MAX];

	(void)state;
	t.client.first = body;
	t.client.first_size = sizeof(body);
	open_both();
	RUN_UNTIL(t.server.n_records == 1);
	assert_int_equal(t.server.last_size, sizeof(body));
}

static void
records_keep_to_their_table(void **state)
{
	struct err e;

	(void)state;
	open_both();
	/* Wrong direction, unknown, too short, too long. */
	assert_int_equal(channel_send(t.client.channel, REC_STDOUT, "x", 1, &e),
	    -1);
	assert_int_equal(channel_send(t.server.channel, REC_STDIN, "x", 1, &e),
	    -1);
	assert_int_equal(channel_send(t.client.channel, REC_N_TYPES, "x", 1,
			     &e),
	    -1);
	assert_int_equal(channel_send(t.client.channel, 0, "x", 1, &e), -1);
	assert_int_equal(channel_send(t.client.channel, REC_SIGNAL, "", 0, &e),
	    -1);
	assert_int_equal(channel_send(t.client.channel, REC_SIGNAL, "xx", 2,
			     &e),
	    -1);
	assert_int_equal(channel_send(t.client.channel, REC_EOF, NULL, 0, &e),
	    0);
	RUN_UNTIL(t.server.n_records == 1);
	assert_int_equal(t.server.last_type, REC_EOF);
}

static void
errors_travel_as_they_are(void **state)
{
	struct err sent, got;

	(void)state;
	open_both();
	err_set(&sent, ERR_CONFLICT, "\"%s\" is taken \xff", "web01");
	assert_int_equal(channel_send_error(t.server.channel, &sent), 0);
	RUN_UNTIL(t.client.n_records == 1);
	assert_int_equal(t.client.last_type, REC_ERROR);
	proto_parse_error(t.client.last, t.client.last_size, &got);
	assert_int_equal(got.code, ERR_CONFLICT);
	assert_string_equal(got.text, "\"web01\" is taken ?");
	proto_parse_error("{\"code\":0}", 10, &got);
	assert_int_equal(got.code, ERR_PROTOCOL);
}

static void
pings_are_answered_by_the_channel(void **state)
{
	struct err e;
	uint64_t before;

	(void)state;
	open_both();
	before = channel_bytes_in(t.client.channel);
	assert_int_equal(channel_send(t.client.channel, REC_PING, "abc", 3, &e),
	    0);
	RUN_UNTIL(channel_bytes_in(t.client.channel) >=
	    before + FRAME_HEAD_SIZE + 1 + 3 + NOISE_TAG_SIZE);
	assert_int_equal(t.server.n_records, 0);
	assert_int_equal(t.client.n_records, 0);
}

/* A peer that does not read: the queue has an end, and `drained` comes once
 * it reads again. */
static void
the_queue_is_bounded(void **state)
{
	static uint8_t body[PROTO_RECORD_MAX];
	size_t sent = 0;
	struct err e;

	(void)state;
	open_both();
	channel_pause(t.server.channel);
	while (channel_send(t.client.channel, REC_FILE, body, sizeof(body),
		   &e) == 0) {
		sent++;
		assert_true(channel_queued(t.client.channel) <
		    CHANNEL_QUEUE_MAX + 2 * PROTO_FRAME_MAX);
		event_base_loop(t.base, EVLOOP_NONBLOCK);
	}
	assert_int_equal(e.code, ERR_BUSY);
	assert_int_equal(t.server.n_records, 0);
	assert_int_equal(t.client.n_drained, 0);
	channel_resume(t.server.channel);
	RUN_UNTIL(t.server.n_records == sent);
	assert_int_equal(t.server.n_bytes, sent * sizeof(body));
	assert_int_equal(t.client.n_drained, 1);
	assert_int_equal(channel_queued(t.client.channel), 0);
}

static void
a_pause_holds_each_record_back(void **state)
{
	(void)state;
	open_both();
	t.server.pause_each = true;
	for (int i = 0; i < MANY; i++)
		send_text(&t.client, REC_STDIN, "0123456789");
	for (size_t i = 1; i <= MANY; i++) {
		RUN_UNTIL(t.server.n_records == i);
		event_base_loop(t.base, EVLOOP_NONBLOCK);
		assert_int_equal(t.server.n_records, i);
		channel_resume(t.server.channel);
	}
	assert_int_equal(t.server.n_bytes, MANY * 10);
}

static void
a_paused_server_notices_that_the_client_left(void **state)
{
	(void)state;
	open_both();
	channel_pause(t.server.channel);
	send_text(&t.client, REC_STDIN, "never read");
	event_base_loop(t.base, EVLOOP_NONBLOCK);
	channel_abort(t.client.channel, NULL);
	RUN_UNTIL(t.server.closed);
	assert_int_equal(t.server.why, ERR_UNREACHABLE);
	assert_int_equal(t.server.n_records, 0);
}

static void
a_paused_client_reads_later_what_the_server_left(void **state)
{
	(void)state;
	open_both();
	channel_pause(t.client.channel);
	send_text(&t.server, REC_EXIT, "{}");
	channel_close(t.server.channel);
	event_base_loop(t.base, EVLOOP_NONBLOCK);
	event_base_loop(t.base, EVLOOP_NONBLOCK);
	assert_false(t.client.closed);
	channel_resume(t.client.channel);
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_int_equal(t.client.n_records, 1);
	assert_int_equal(t.client.why, ERR_NONE);
	assert_int_equal(t.server.why, ERR_NONE);
}

static void
a_close_sends_all_that_is_queued(void **state)
{
	static uint8_t body[PROTO_RECORD_MAX];
	struct err e;

	(void)state;
	open_both();
	for (int i = 0; i < 15; i++)
		assert_int_equal(channel_send(t.server.channel, REC_FILE, body,
				     sizeof(body), &e),
		    0);
	/* What the client still sends is not read, and harms nothing. */
	for (int i = 0; i < MANY; i++)
		send_text(&t.client, REC_STDIN, "0123456789");
	channel_close(t.server.channel);
	assert_int_equal(channel_send(t.server.channel, REC_EOF, NULL, 0, &e),
	    -1);
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_int_equal(t.client.n_records, 15);
	assert_int_equal(t.client.n_bytes, 15 * sizeof(body));
	assert_int_equal(t.client.why, ERR_NONE);
	assert_int_equal(t.server.why, ERR_NONE);
}

static void
closing_inside_callbacks_is_legal(void **state)
{
	(void)state;
	t.client.abort_on_open = true;
	connect_both(false);
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_false(t.server.opened);
	memset(&t.client, 0, sizeof(t.client));
	memset(&t.server, 0, sizeof(t.server));

	t.server.close_on_record = true;
	open_both();
	send_text(&t.client, REC_STDIN, "one");
	send_text(&t.client, REC_STDIN, "two");
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_int_equal(t.server.n_records, 1);
	assert_int_equal(t.server.why, ERR_NONE);
}

static void
an_abort_tells_its_reason(void **state)
{
	struct err why;

	(void)state;
	open_both();
	err_set(&why, ERR_REVOKED, "ann was revoked meanwhile");
	channel_abort(t.server.channel, &why);
	assert_false(t.server.closed);
	RUN_UNTIL(t.client.closed && t.server.closed);
	assert_int_equal(t.server.why, ERR_REVOKED);
	assert_int_equal(t.client.why, ERR_NONE);
}

static void
nobody_listens(void **state)
{
	struct addr addr;
	struct err e;
	int listener = listen_on_loopback(&addr);

	(void)state;
	close(listener);
	t.client.channel = channel_connect(t.base, &addr, &t.operator,
	    t.node.public, PATIENCE_MS, &handlers, &t.client, &e);
	assert_non_null(t.client.channel);
	assert_false(t.client.closed);
	RUN_UNTIL(t.client.closed);
	assert_int_equal(t.client.why, ERR_UNREACHABLE);
	assert_non_null(strstr(t.client.text, "Connection refused"));
	assert_non_null(strstr(t.client.text, "127.0.1.1:"));
}

static void
a_silent_server_runs_into_the_time_limit(void **state)
{
	struct addr addr;
	struct err e;
	int listener = listen_on_loopback(&addr);

	(void)state;
	t.client.channel = channel_connect(t.base, &addr, &t.operator,
	    t.node.public, 50, &handlers, &t.client, &e);
	RUN_UNTIL(t.client.closed);
	assert_int_equal(t.client.why, ERR_UNREACHABLE);
	assert_non_null(strstr(t.client.text, "does not answer"));
	close(listener);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(a_session_opens_talks_and_closes),
		SESSION_TEST(a_joiner_is_known_by_its_token),
		SESSION_TEST(small_records_leave_in_one_write),
		SESSION_TEST(bytes_may_come_one_by_one),
		SESSION_TEST(the_longest_record_passes_and_no_longer_one),
		SESSION_TEST(the_first_record_may_be_the_longest),
		SESSION_TEST(records_keep_to_their_table),
		SESSION_TEST(errors_travel_as_they_are),
		SESSION_TEST(pings_are_answered_by_the_channel),
		SESSION_TEST(the_queue_is_bounded),
		SESSION_TEST(a_pause_holds_each_record_back),
		SESSION_TEST(a_paused_server_notices_that_the_client_left),
		SESSION_TEST(a_paused_client_reads_later_what_the_server_left),
		SESSION_TEST(a_close_sends_all_that_is_queued),
		SESSION_TEST(closing_inside_callbacks_is_legal),
		SESSION_TEST(an_abort_tells_its_reason),
		SESSION_TEST(nobody_listens),
		SESSION_TEST(a_silent_server_runs_into_the_time_limit),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
