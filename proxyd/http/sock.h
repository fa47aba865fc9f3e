/*
 * sock.h: a connected socket of the hot path: our own recv and sendmsg, and
 * one edge-triggered event registered once.
 *
 * The kernel tells each change once, so what it told must be remembered:
 * `readable` stays until a read comes back short or empty, `writable` until a
 * write does.  Whoever has such a flag before him acts before he waits.
 *
 * With TLS it is used as without.  Only who wants the kernel to move bytes
 * (splice, sendfile) asks sock_raw_in() or sock_raw_out() first, and copies
 * when they say no.
 */
#ifndef MUSTER_SOCK_H
#define MUSTER_SOCK_H

#include <sys/queue.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>
#include <event2/event_struct.h>

struct tls_conn;

struct sock {
	int fd; /* -1: closed */
	bool readable, writable;
	bool closed;   /* the peer's FIN is there, perhaps behind data */
	bool unsure;   /* and perhaps a reset is: see sock_look_again() */
	bool muted;    /* what can be read is not told: see sock_mute() */
	bool shutting; /* the last word of TLS still has to go out */
	int lazy;      /* bytes below which it is not told; 0: any */
	struct tls_conn *tls; /* ours; NULL: plain */
	struct sock_loop *loop;
	LIST_ENTRY(sock) turn; /* of those whose turn comes again */
	struct event ev;
};

/* All sockets of a worker. */
struct sock_loop {
	struct event_base *base;
	LIST_HEAD(, sock) again; /* had their turn, and have more to do */
	struct event *next;
};

#define SOCK_EOF   0
#define SOCK_AGAIN (-1)
#define SOCK_ERROR (-2)

/* 0, or -1: no memory. */
int sock_loop_init(struct sock_loop *, struct event_base *);
void sock_loop_fini(struct sock_loop *);

/* Takes fd and waits for everything.  -1: no memory; fd is closed. */
int sock_open(struct sock *, int fd, struct sock_loop *,
    event_callback_fn ready, void *arg);

/* Notes what an event says. */
void sock_event(struct sock *, short what);

/* Bytes read, or SOCK_*. */
ssize_t sock_recv(struct sock *, void *, size_t);

/*
 * A reset that came together with data is told as "readable and writable",
 * as data alone is, and only once.  Whoever has read short and still needs
 * more asks here: if true, he reads again before he waits.
 */
bool sock_look_again(struct sock *);

/*
 * Bytes written (0: it is full), or SOCK_ERROR.  With `more` the last packet
 * may wait for what is written next, which must come at once.  What was not
 * taken is what must be offered next, all of it: TLS may have part of it on
 * its way already.
 */
ssize_t sock_send(struct sock *, struct iovec *, int n, bool more);

/* From now on it speaks TLS; taken. */
void sock_secure(struct sock *, struct tls_conn *);
/* And no more, without a word: what comes is dropped by whoever reads it. */
void sock_unsecure(struct sock *);

/* Whether the bytes in the kernel are those of the peer and those for it, so
 * that the kernel may move them. */
bool sock_raw_in(const struct sock *);
bool sock_raw_out(const struct sock *);

/* Says what a protocol has to say at its end, before the socket is closed.
 * False: there is no room for it now. */
bool sock_last_word(struct sock *);

/* Bytes written that the peer's kernel has not taken; 0: none, or unknown. */
int sock_unsent(const struct sock *);

/* No more writes; the peer sees the end. */
void sock_shut(struct sock *);

void sock_close(struct sock *);
/* The peer sees a reset, not an end. */
void sock_abort(struct sock *);

/*
 * Whoever cannot read now, because nobody takes what he has, is still woken
 * by each packet that arrives.  Muted, he is not; sock_unmute() tells anew
 * what is there.  Between them `readable` stays as it is.
 */
void sock_mute(struct sock *);
void sock_unmute(struct sock *);

/*
 * Lazy: only told when a good part of what the kernel may hold is there (or
 * the end), which saves half of the wake-ups that a big body costs.  Less
 * than that is found by those who look from time to time.
 */
void sock_lazy(struct sock *);
void sock_eager(struct sock *);

/* Calls `ready` again when everybody who has something to do, also what came
 * meanwhile, had his turn. */
void sock_again(struct sock *);

#endif
