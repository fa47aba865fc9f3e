/* test_forward.c: heads as they are sent on, to the byte. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/http/forward.h"
#include "proxyd/process/snapshot_plan.h"

static const struct head_limits limits = { 8192, 64 << 10, 100 };

#define G "GET / HTTP/1.1\r\nHost: a\r\n"
#define OURS                                                        \
	"X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n" \
	"X-Forwarded-Host: a\r\nX-Real-IP: 192.0.2.1\r\n"
#define END "Via: 1.1 muster\r\nX-Request-Id: id\r\n\r\n"

static char out[FORWARD_MAX];

static size_t
forward(const char *head, bool trusted)
{
	struct request r;
	enum why why;
	struct forward_request fr = {
		.req = &r,
		.base = head,
		.peer_ip = "192.0.2.1",
		.client_ip = "192.0.2.1",
		.proto = "http",
		.host = "main.example",
		.via = "muster",
		.id = "id",
		.id_len = 2,
		.trusted = trusted,
	};

	request_init(&r);
	assert_int_equal(parse_request(&r, head, strlen(head), &limits, &why),
	    PARSE_DONE);
	return forward_request(out, sizeof(out), &fr);
}

static void
requests(void **state)
{
	static const struct {
		const char *head, *want;
		bool trusted;
	} cases[] = {
		{ G "\r\n", G OURS END, false },
		{ "get /x HTTP/1.2\r\nhost:  A:80\r\n\r\n",
		    "get /x HTTP/1.1\r\nHost: A:80\r\n"
		    "X-Forwarded-For: 192.0.2.1\r\n"
		    "X-Forwarded-Proto: http\r\nX-Forwarded-Host: A:80\r\n"
		    "X-Real-IP: 192.0.2.1\r\n" END,
		    false },
		{ "GET /x HTTP/1.0\r\n\r\n",
		    "GET /x HTTP/1.1\r\nHost: main.example\r\n"
		    "X-Forwarded-For: 192.0.2.1\r\n"
		    "X-Forwarded-Proto: http\r\n"
		    "X-Forwarded-Host: main.example\r\n"
		    "X-Real-IP: 192.0.2.1\r\nVia: 1.0 muster\r\n"
		    "X-Request-Id: id\r\n\r\n",
		    false },
		/* Lines that are right stay to the byte, others are made so,
		 * in their order. */
		{ G "A: 1\r\nB:2\r\nC: 3\r\nD: 4 \r\nE: 5\r\nF:\r\n\r\n",
		    G
		    "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: \r\n" OURS END,
		    false },
		{ G "Connection: A, close\r\nA: 1\r\nB: 2\r\na:3\r\n"
		    "TE: x\r\nC: 4\r\nProxy: x\r\nD_E: 5\r\n\r\n",
		    G "B: 2\r\nC: 4\r\n" OURS END, false },
		/* What Connection names cannot take away what is ours. */
		{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
		  "Connection: content-length, host, x-forwarded-for\r\n\r\n",
		    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" OURS
			END,
		    false },
		{ G "Expect: 100-continue\r\nContent-Length: 05\r\n\r\n", NULL,
		    false },
		{ "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n"
		  "Content-Length: 05\r\n\r\n",
		    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
		    "Expect: 100-continue\r\n" OURS END,
		    false },
		{ G "Connection: upgrade\r\nUpgrade: foo\r\n\r\n",
		    G "Connection: Upgrade\r\nUpgrade: foo\r\n" OURS END,
		    false },
		{ "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 010\r\n\r\n",
		    "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 9\r\n" OURS
			END,
		    false },
		{ G "X-Forwarded-For: 9.9.9.9\r\nForwarded: for=x\r\n\r\n",
		    G OURS END, false },
		{ G "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 8.8.8.8\r\n"
		    "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n"
		    "Forwarded: for=x\r\n\r\n",
		    G "X-Forwarded-For: 9.9.9.9, 8.8.8.8, 192.0.2.1\r\n"
		      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n"
		      "X-Real-IP: 192.0.2.1\r\n"
		      "Forwarded: for=x, for=192.0.2.1\r\n" END,
		    true },
	};

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		size_t n;

		if (cases[i].want == NULL)
			continue;
		n = forward(cases[i].head, cases[i].trusted);
		out[n] = '\0';
		assert_string_equal(out, cases[i].want);
	}
}

static void
no_room_is_told(void **state)
{
	static const char head[] = G "A: 1\r\n\r\n";
	struct request r;
	enum why why;
	struct forward_request fr = {
		.req = &r,
		.base = head,
		.peer_ip = "192.0.2.1",
		.client_ip = "192.0.2.1",
		.proto = "http",
		.host = "a",
		.via = "muster",
		.id = "id",
		.id_len = 2,
	};
	size_t whole;

	(void)state;
	request_init(&r);
	parse_request(&r, head, sizeof(head) - 1, &limits, &why);
	whole = forward_request(out, sizeof(out), &fr);
	for (size_t room = 0; room <= whole; room++) {
		char *exact = malloc(room + 1);

		assert_int_equal(forward_request(exact, room, &fr),
		    room < whole ? 0 : whole);
		free(exact);
	}
}

static void
responses(void **state)
{
	static const struct {
		const char *head, *want;
		enum forward_connection connection;
		bool is_head;
	} cases[] = {
		{ "HTTP/1.0 200 Fine\r\nDate: x\r\nContent-Length: 05\r\n\r\n",
		    "HTTP/1.1 200 Fine\r\nDate: x\r\nContent-Length: 5\r\n\r\n",
		    FORWARD_PERSIST, false },
		{ "HTTP/1.1 200\r\nX: y\r\nContent-Length: 5\r\n\r\n",
		    "HTTP/1.1 200 \r\nX: y\r\nContent-Length: 5\r\n"
		    "Date: now\r\nConnection: close\r\n\r\n",
		    FORWARD_CLOSE, false },
		{ "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n"
		  "Connection: X, close\r\nX: y\r\nKeep-Alive: 5\r\n\r\n",
		    "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked"
		    "\r\nConnection: keep-alive\r\n\r\n",
		    FORWARD_PERSIST_10, false },
		{ "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 100\r\n\r\n",
		    "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 100\r\n\r\n",
		    FORWARD_PERSIST, true },
		{ "HTTP/1.1 204 No\r\nDate: x\r\nContent-Length: 0\r\n\r\n",
		    "HTTP/1.1 204 No\r\nDate: x\r\n\r\n", FORWARD_PERSIST,
		    false },
		{ "HTTP/1.1 304 Same\r\nDate: x\r\nContent-Length: 9\r\n\r\n",
		    "HTTP/1.1 304 Same\r\nDate: x\r\nContent-Length: 9\r\n\r\n",
		    FORWARD_PERSIST, false },
		{ "HTTP/1.1 103 Hints\r\nLink : a\r\n\r\n",
		    "HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n", FORWARD_CLOSE,
		    false },
		{ "HTTP/1.1 101 Go\r\nUpgrade: foo\r\nConnection: upgrade\r\n"
		  "\r\n",
		    "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: foo"
		    "\r\n\r\n",
		    FORWARD_PERSIST, false },
	};
	struct response r;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct forward_response fr = {
			.res = &r,
			.base = cases[i].head,
			.date = "now",
			.extra = "",
			.connection = cases[i].connection,
		};
		size_t n;

		response_init(&r);
		assert_int_equal(parse_response(&r, cases[i].head,
				     strlen(cases[i].head), &limits,
				     cases[i].is_head),
		    PARSE_DONE);
		fr.chunked = r.body.kind == FRAMING_CHUNKED;
		n = forward_response(out, sizeof(out), &fr);
		out[n] = '\0';
		assert_string_equal(out, cases[i].want);
	}
}

static void
clients(void **state)
{
	static const struct {
		const char *fields, *client;
	} cases[] = {
		{ "", "10.0.0.1" },
		{ "X-Forwarded-For: 1.2.3.4\r\n", "1.2.3.4" },
		{ "X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n", "1.2.3.4" },
		{ "X-Forwarded-For: 6.6.6.6, 1.2.3.4 , 10.1.1.1\r\n",
		    "1.2.3.4" },
		{ "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 10.9.9.9\r\n",
		    "1.2.3.4" },
		{ "X-Forwarded-For: 10.2.2.2, 10.1.1.1\r\n", "10.2.2.2" },
		{ "X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1" },
		{ "X-Forwarded-For: [2001:db8::1]:443\r\n", "2001:db8::1" },
		{ "X-Forwarded-For: 1.2.3.4:5678\r\n", "1.2.3.4" },
		{ "X-Forwarded-For: 1.2.3.4, unknown\r\n", "10.0.0.1" },
		{ "X-Forwarded-For: ,\r\n", "10.0.0.1" },
	};
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *snap;
	struct cidr c;
	int fd;

	(void)state;
	assert_int_equal(cidr_parse("10.0.0.0/8", &c, &e), 0);
	assert_int_equal(plan_peer(p, PLAN_TRUSTED, &c, &e), 0);
	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	snap = snapshot_map(fd, &e);
	close(fd);
	for (size_t i = 0; i < nitems(cases); i++) {
		char head[300] = G, buf[ADDR_TEXT_MAX];
		struct request r;
		enum why why;

		strncat(head, cases[i].fields, 200);
		strncat(head, "\r\n", 3);
		request_init(&r);
		assert_int_equal(parse_request(&r, head, strlen(head), &limits,
				     &why),
		    PARSE_DONE);
		assert_string_equal(forward_client_ip(&r, head, snap,
					"10.0.0.1", true, buf, sizeof(buf)),
		    cases[i].client);
		assert_string_equal(forward_client_ip(&r, head, snap,
					"10.0.0.1", false, buf, sizeof(buf)),
		    "10.0.0.1");
	}
	snapshot_release(snap);
}

static void
hops(void **state)
{
	static const char head[] =
	    G "Via: 1.1 muster, 1.0 other\r\n"
	      "Via: HTTP/1.1 muster (x), 1.1 musterX, muster, 1.1 muster2\r\n"
	      "\r\n";
	struct request r;
	enum why why;

	(void)state;
	request_init(&r);
	assert_int_equal(parse_request(&r, head, sizeof(head) - 1, &limits,
			     &why),
	    PARSE_DONE);
	assert_int_equal(forward_hops(&r, head, "muster"), 2);
	assert_int_equal(forward_hops(&r, head, "other"), 1);
	assert_int_equal(forward_hops(&r, head, "nobody"), 0);
}

/* Over a Unix socket nobody has an address. */
static void
peers_without_an_address(void **state)
{
	static const struct {
		const char *field, *want;
		const char *client_ip;
		bool trusted;
	} cases[] = {
		{ "", "X-Forwarded-For: unknown\r\n", NULL, false },
		{ "X-Forwarded-For: 1.2.3.4\r\n",
		    "X-Forwarded-For: unknown\r\n", NULL, false },
		{ "X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\n",
		    "X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\n", "5.6.7.8", true },
		{ "X-Forwarded-For:\r\n", "X-Forwarded-For: unknown\r\n", NULL,
		    true },
		{ "Forwarded: for=1.2.3.4\r\n",
		    "Forwarded: for=1.2.3.4, for=unknown\r\n", NULL, true },
	};
	char head[256];
	enum why why;

	(void)state;
	for (size_t i = 0; i < nitems(cases); i++) {
		struct request r;
		struct forward_request fr = {
			.req = &r,
			.base = head,
			.client_ip = cases[i].client_ip,
			.proto = "http",
			.host = "main.example",
			.via = "muster",
			.id = "id",
			.id_len = 2,
			.trusted = cases[i].trusted,
		};

		snprintf(head, sizeof(head), G "%s\r\n", cases[i].field);
		request_init(&r);
		assert_int_equal(parse_request(&r, head, strlen(head), &limits,
				     &why),
		    PARSE_DONE);
		out[forward_request(out, sizeof(out) - 1, &fr)] = '\0';
		assert_non_null(strstr(out, cases[i].want));
		assert_non_null(strstr(out,
		    cases[i].client_ip == NULL ? "X-Real-IP: unknown\r\n" :
						 "X-Real-IP: 5.6.7.8\r\n"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(no_room_is_told),
		cmocka_unit_test(responses),
		cmocka_unit_test(clients),
		cmocka_unit_test(hops),
		cmocka_unit_test(peers_without_an_address),
	};

	return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
