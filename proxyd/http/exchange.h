/*
 * exchange.h: one request and its response, from the first byte of the one
 * to the last of the other.
 *
 * exchange.c drives it (states, events, deadlines); route.c finds the site
 * and answers what needs no node; collect.c takes the request's body;
 * upstream.c gets a node, sends, and tries again; respond.c takes the node's response to the client; finish.c counts
 * and logs.  One request's way is in that order.
 */
#ifndef MUSTER_EXCHANGE_H
#define MUSTER_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "proxyd/balance/balance.h"
#include "proxyd/balance/queue.h"
#include "proxyd/http/client.h"
#include "proxyd/http/flow.h"
#include "proxyd/http/forward.h"
#include "proxyd/http/limit.h"
#include "proxyd/http/parse_request.h"
#include "proxyd/http/parse_response.h"

enum exchange_state {
	X_HEAD,	    /* the request's head is coming */
	X_BODY,	    /* its body is, and no node is asked before it is here */
	X_QUEUED,   /* waits for a place on a node */
	X_CONNECT,  /* waits for a connection to one */
	X_REQUEST,  /* request on its way, no response yet */
	X_RESPONSE, /* response on its way */
	X_REPLY,    /* our own answer on its way */
	X_FILE,	    /* a file of the site's home, or the question for one */
	X_DONE,
	X_STATES
};

struct access_log_entry;

struct compress;
struct sending;

struct exchange {
	struct exchange *next; /* among the free */
	struct client *client;
	struct engine *e;
	struct snapshot *snap; /* the one it began with */
	const struct snap_site *site;
	const struct snap_role *role;
	uint32_t role_index;

	struct sending *sending; /* of a file; static/serve.c's */
	uint8_t not_ours;	 /* enum lookup_verdict: why no file */

	struct compress *compress; /* the response's; NULL: as it came */
	uint8_t compress_why;	   /* enum compress_why */

	/* The node, while one is held. */
	struct node_conn *node;
	const struct snap_node *snap_node;
	struct sb_target *target;

	uint8_t state;	 /* enum exchange_state */
	bool holds_node; /* a place at target */
	bool holds_site; /* one of the site's */
	bool trusted;	 /* the peer is */
	bool body_held;	 /* the whole body is here */
	bool fresh;	 /* no pooled connection: one was dead already */
	bool may_return; /* to the node tried last: no other is left */
	bool resent;
	bool broken_up;	  /* the node takes no more of the body */
	bool tell_why;	  /* in X-Muster-Why */
	bool secure;	  /* the client came by https, as far as is known */
	bool keep_alive;  /* the client goes on after this */
	bool delivering;  /* all is here from the node; it has been let go */
	bool node_due;	  /* the node is the one waited for */
	uint8_t interims; /* 1xx so far */
	uint8_t attempts;
	uint16_t status;  /* sent to the client; 0: none */
	enum why why;	  /* for the log: what went wrong, or delayed it */
	enum why skip;	  /* why not the first choice of nodes */
	uint32_t retry_s; /* when the client may try again; 0: unsaid */
	uint32_t in_used; /* bytes of client.in that are this request's */
	struct limited limited;
	struct balance_ask ask;
	struct queue_entry queue;
	int64_t start_us, queued_us, sent_us;  /* -1: not so far */
	int64_t queue_us, connect_us, node_us; /* how long; -1 */
	int64_t state_ms, progress_ms; /* since when; of the last byte moved */
	int64_t node_ms;	       /* of the last one from the node */
	int unsent;		       /* see exchange_stalled() */
	int64_t rate_ms;	       /* the body's rate is measured from */
	uint64_t rate_bytes;
	uint64_t first_chunk; /* size of a chunk that goes with the head */
	const char *client_ip;
	uint32_t id_len; /* of request_id */
	char request_id[REQUEST_ID_MAX];
	char ip_text[ADDR_TEXT_MAX];
	struct flow up, down; /* request, response */

	struct request req; /* last: their lists are not cleared */
	struct response res;
};

/* --- exchange.c */

/* A new one for a client's next request; NULL: no memory. */
struct exchange *exchange_new(struct client *);

/* The head is complete and right: off it goes. */
void exchange_start(struct exchange *);

/* The head was refused. */
void exchange_refuse(struct exchange *, enum why);

/* Goes on until something must be waited for. */
void exchange_run(struct exchange *);

/* Time has passed. */
void exchange_sweep(struct exchange *);

/* Whether the client has taken nothing for too long, nor its kernel. */
bool exchange_stalled(struct exchange *);

/* The only place where a state changes. */
void exchange_move(struct exchange *, enum exchange_state);

/* The client is gone: nobody to answer. */
void exchange_abandon(struct exchange *, enum why);

/* --- route.c */
void exchange_route(struct exchange *);
/* No answer of ours: on to a node of the site's role. */
void exchange_to_node(struct exchange *);
/* The field line that its site wants in every answer by https; or "". */
const char *exchange_hsts(const struct exchange *);
/* Whether the client has said all of this request, and it is known where it
 * ends. */
bool exchange_was_read(const struct exchange *);
/* Answers by ourselves, with the status of `why`. */
void exchange_reply(struct exchange *, enum why);
void exchange_reply_run(struct exchange *);

/* --- collect.c */

/* Takes up the body, as a whole if it may be, and goes on to a node. */
void exchange_take_body(struct exchange *);
void exchange_collect_run(struct exchange *);

/* --- upstream.c */

/* Finds a node and sends, or waits in the queue, or gives up. */
void exchange_dispatch(struct exchange *);
void exchange_connect_run(struct exchange *);
void exchange_run_up(struct exchange *);
/* The node failed before any of its response went out: another one, or the
 * client is told. */
void exchange_node_failed(struct exchange *, enum why);
/* Gives back node and place.  `how` is for its health record. */
void exchange_release(struct exchange *, enum balance_end how, enum why,
    bool reusable);
/* Gives back the site's place. */
void exchange_release_site(struct exchange *);
/* Lets go whoever waits for a place in this role. */
void exchange_serve_queue(struct engine *, const struct snap_role *);
void exchange_leave_queue(struct exchange *);

/* --- respond.c */
void exchange_read_response(struct exchange *);
void exchange_run_down(struct exchange *);

/* --- finish.c */

/* The response's compressor is not needed any more. */
void exchange_drop_coding(struct exchange *);

/* Counts, logs, gives everything back, and lets the client go on. */
void exchange_finish(struct exchange *, enum client_next);
/* Gives everything back without a word. */
void exchange_free(struct exchange *);
/* The end of one that goes on as a tunnel: counts, and gives back what the
 * tunnel did not take. */
void exchange_became_tunnel(struct exchange *);
/* What its line in the access log will say, to be freed; NULL: no log. */
struct access_log_entry *exchange_log_entry(struct exchange *);

/* Where the request's head stands. */
const char *exchange_base(const struct exchange *);

#endif
