/*
 * origin.c: the web server of the demo's nodes: answers whatever it is asked
 * with one page, and says what it was asked, over what, and for whom.
 *
 * usage: origin ADDRESS PORT PAGE-FILE
 *
 * It is only ever asked by a proxy that checks requests; evhttp would not do
 * for anybody else.
 */
#include <err.h>
#include <signal.h>
#include <stdlib.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "common/base/err.h"
#include "common/base/io.h"

#define PAGE_MAX (1U << 20)

struct page {
	char *text;
	size_t size;
};

static const char *
field(struct evhttp_request *req, const char *name)
{
	const char *value =
	    evhttp_find_header(evhttp_request_get_input_headers(req), name);

	return value != NULL ? value : "nobody";
}

static void
answer(struct evhttp_request *req, void *arg)
{
	const struct page *page = arg;
	struct evbuffer *out = evhttp_request_get_output_buffer(req);

	evhttp_add_header(evhttp_request_get_output_headers(req),
	    "Content-Type", "text/html");
	evbuffer_add(out, page->text, page->size);
	evbuffer_add_printf(out, "%s, by %s, for %s\n",
	    evhttp_request_get_uri(req), field(req, "X-Forwarded-Proto"),
	    field(req, "X-Forwarded-For"));
	evhttp_send_reply(req, HTTP_OK, "OK", NULL);
}

int
main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = base != NULL ? evhttp_new(base) : NULL;
	struct page page;
	struct err e;

	if (argc != 4 || http == NULL)
		errx(2, "usage: origin ADDRESS PORT PAGE-FILE");
	signal(SIGPIPE, SIG_IGN);
	if (io_read_file(argv[3], PAGE_MAX, &page.text, &page.size, &e) == -1)
		errx(1, "%s", e.text);
	evhttp_set_gencb(http, answer, &page);
	if (evhttp_bind_socket(http, argv[1],
		(uint16_t)strtoul(argv[2], NULL, 10)) == -1)
		err(1, "cannot listen at %s:%s", argv[1], argv[2]);
	event_base_dispatch(base);
	evhttp_free(http);
	event_base_free(base);
	free(page.text);
	return 0;
}
