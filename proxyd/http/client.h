/*
 * client.h: a client's connection: reads request heads, hands each to an
 * exchange, and goes on with the next when that is over.
 */
#ifndef MUSTER_CLIENT_H
#define MUSTER_CLIENT_H

#include <sys/queue.h>
#include <sys/queue.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "proxyd/http/buf.h"
#include "proxyd/http/sock.h"
#include "proxyd/process/why.h"

struct engine;
struct exchange;
struct node_conn;
struct handshake;
struct proxied;
struct tunnel;

enum client_state {
	CLIENT_PROXIED,	  /* it is to be told who it is: see proxied.h */
	CLIENT_HANDSHAKE, /* no TLS so far */
	CLIENT_READING,	  /* idle, or part of a head is there */
	CLIENT_BUSY,	  /* an exchange is under way */
	CLIENT_TUNNEL,	  /* no HTTP any more */
	CLIENT_LINGER,	  /* we said our last; what still comes is dropped */
	CLIENT_DEAD,	  /* closed; freed after the callback */
};

struct client {
	struct sock s;
	struct engine *e;
	struct client *next; /* among the dead or free */
	struct exchange *x;  /* NULL: not one byte of a request yet */
	union {
		struct tunnel *tunnel;	     /* while CLIENT_TUNNEL */
		struct handshake *handshake; /* while CLIENT_HANDSHAKE */
	};
	struct proxied *proxied;	       /* or NULL */
	LIST_HEAD(kept_conns, node_conn) kept; /* idle, and its alone */
	struct buf *in;	  /* what was read; NULL: nothing */
	int64_t since_ms; /* of this state; of a head's first byte */
	uint32_t index;	  /* in engine.clients */
	uint32_t n_requests;
	uint32_t lingered; /* bytes dropped */
	uint8_t state;	   /* enum client_state */
	bool unread;	   /* it has not said all of its request */
	bool speaks_tls;   /* to us */
	bool secure;	   /* to us, or to whoever passes it on */
	bool waits;	   /* for leave to send: limit.h */
	bool counted;	   /* with its address, at counted_row */
	uint32_t counted_row;
	TAILQ_ENTRY(client) waiting;
	struct addr peer;
	char ip[ADDR_IP_MAX];
};

/* Takes an accepted socket. */
void client_new(struct engine *, int fd, const struct addr *peer, bool secure);

/* Goes on until something must be waited for. */
void client_run(struct client *);

/* How a client goes on after an exchange. */
enum client_next {
	CLIENT_KEEP,  /* with the next request */
	CLIENT_CLOSE, /* after reading what it may still send */
	CLIENT_ABORT, /* at once: it must see that something is missing */
};

/* The exchange is over; `used` bytes of `in` belonged to it. */
void client_next(struct client *, enum client_next, uint32_t used);

/* The exchange is over; from now on only bytes are moved. */
void client_tunnel(struct client *, struct tunnel *);

/* All was said: closes once the client has it, dropping what still comes. */
void client_part(struct client *);

/* Ends whatever it is doing, at once. */
void client_cut(struct client *, enum why);

/* Time has passed. */
void client_sweep(struct client *);

/* Moves what `in` holds to a buffer no larger than needed. */
void client_shrink(struct client *);

/* Closes at once; freed after the callback. */
void client_close(struct client *);

#endif
