/*
 * reply.h: answers of our own: refusals, errors, pages of disabled sites.
 * Plain and small; a site may bring its own page.
 */
#ifndef MUSTER_REPLY_H
#define MUSTER_REPLY_H

#include <stdbool.h>
#include <stddef.h>

struct reply {
	int status;
	const char *page;  /* HTML of the site's, or NULL: ours */
	const char *extra; /* whole field lines, or "" */
	const char *date;
	unsigned retry_after_s; /* 0: not said */
	bool keep_alive;
	bool keep_alive_10; /* and must be told so */
	bool head;	    /* it answers a HEAD: no body goes out */
};

/* Writes the whole response.  Its size, or 0: no room. */
size_t reply_write(char *out, size_t room, const struct reply *);

/* "Bad Gateway" */
const char *reply_reason(int status);

#endif
