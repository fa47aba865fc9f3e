/* reply.c: see reply.h. */
#include "proxyd/http/reply.h"

#include "common/base/io.h"
#include "proxyd/http/writer.h"

static const struct {
	short status;
	const char *reason, *text;
} replies[] = {
	{ 200, "OK", "" },
	{ 206, "Partial Content", "" },
	{ 301, "Moved Permanently", "This site is at https://." },
	{ 304, "Not Modified", "" },
	{ 308, "Permanent Redirect", "This site is at https://." },
	{ 400, "Bad Request", "The request could not be understood." },
	{ 403, "Forbidden", "This file is not shown." },
	{ 404, "Not Found", "There is no such site here." },
	{ 405, "Method Not Allowed", "This method is not served here." },
	{ 408, "Request Timeout", "The request took too long to arrive." },
	{ 412, "Precondition Failed", "" },
	{ 413, "Content Too Large", "The request is larger than allowed." },
	{ 414, "URI Too Long", "The address is longer than allowed." },
	{ 416, "Range Not Satisfiable", "" },
	{ 417, "Expectation Failed", "The expectation cannot be met." },
	{ 421, "Misdirected Request",
	    "This server does not answer for this name." },
	{ 429, "Too Many Requests",
	    "There were too many requests. Please try again shortly." },
	{ 431, "Request Header Fields Too Large",
	    "The request's header is larger than allowed." },
	{ 501, "Not Implemented", "The request needs what is not known." },
	{ 502, "Bad Gateway", "The site gave no valid answer." },
	{ 503, "Service Unavailable",
	    "The site cannot be reached for now. Please try again later." },
	{ 504, "Gateway Timeout", "The site did not answer in time." },
	{ 505, "HTTP Version Not Supported", "Please use HTTP/1.1." },
	{ 508, "Loop Detected", "The request has come here before." },
};

static size_t
row_of(int status)
{
	size_t bad = 0;

	for (size_t i = 0; i < nitems(replies); i++) {
		if (replies[i].status == status)
			return i;
		if (replies[i].status == 400)
			bad = i;
	}
	return bad;
}

const char *
reply_reason(int status)
{
	return replies[row_of(status)].reason;
}

static void
write_page(struct writer *w, int status)
{
	size_t i = row_of(status);

	PUT(w, "<!DOCTYPE html>\n<html><head><title>");
	put_number(w, (uint64_t)status);
	PUT(w, " ");
	put_text(w, replies[i].reason);
	PUT(w, "</title></head>\n<body><h1>");
	put_text(w, replies[i].reason);
	PUT(w, "</h1>\n<p>");
	put_text(w, replies[i].text);
	PUT(w, "</p></body></html>\n");
}

size_t
reply_write(char *out, size_t room, const struct reply *r)
{
	char built[1024];
	struct writer w, page;
	const char *body = r->page;
	size_t size;

	writer_init(&page, built, sizeof(built));
	if (body == NULL && r->status != 200)
		write_page(&page, r->status);
	size = body != NULL ? strlen(body) : writer_size(&page);
	if (body == NULL)
		body = built;

	writer_init(&w, out, room);
	PUT(&w, "HTTP/1.1 ");
	put_number(&w, (uint64_t)r->status);
	PUT(&w, " ");
	put_text(&w, reply_reason(r->status));
	PUT(&w, "\r\nDate: ");
	put_text(&w, r->date);
	if (size > 0)
		PUT(&w, "\r\nContent-Type: text/html; charset=utf-8");
	PUT(&w, "\r\nContent-Length: ");
	put_number(&w, size);
	if (r->status >= 400)
		PUT(&w, "\r\nCache-Control: no-store");
	if (r->retry_after_s > 0) {
		PUT(&w, "\r\nRetry-After: ");
		put_number(&w, r->retry_after_s);
	}
	PUT(&w, "\r\n");
	if (r->status == 405)
		PUT(&w,
		    "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, "
		    "PATCH\r\n");
	if (!r->keep_alive)
		PUT(&w, "Connection: close\r\n");
	else if (r->keep_alive_10)
		PUT(&w, "Connection: keep-alive\r\n");
	put_text(&w, r->extra);
	PUT(&w, "\r\n");
	if (!r->head)
		put(&w, body, size);
	return writer_size(&w);
}
