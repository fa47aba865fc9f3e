/* node_conn.c: see node_conn.h. */
#include "proxyd/http/node_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/http/client.h"
#include "proxyd/http/engine_parts.h"
#include "proxyd/process/dial.h"

#define KEPT_MAX 5 /* by one client */

static struct node_conn *take_idle(struct engine *, const struct snap_node *,
    bool careful);
static struct node_conn *take_kept(struct client *, const struct snap_node *,
    uint64_t key, bool careful);
static struct node_conn *connect_new(struct engine *, const struct snapshot *,
    const struct snap_node *);
static void node_ready(int fd, short what, void *);
static bool alive(struct node_conn *);

struct node_conn *
node_conn_get(struct engine *e, const struct snapshot *snap,
    const struct snap_node *node, struct client *c, uint64_t key, bool fresh,
    bool careful)
{
	struct node_conn *n = NULL;

	if (!fresh)
		n = key == 0 ? take_idle(e, node, careful) :
			       take_kept(c, node, key, careful);
	if (n == NULL)
		n = connect_new(e, snap, node);
	if (n != NULL) {
		n->client = c;
		n->key = key;
	}
	return n;
}

static void
leave_pool(struct node_conn *n)
{
	LIST_REMOVE(n, in_pool);
	n->e->n_idle--;
	TAILQ_REMOVE(&n->e->idle_nodes, n, in_idle);
}

static struct node_conn *
take(struct node_conn *n)
{
	leave_pool(n);
	n->state = NODE_BUSY;
	n->reused = true;
	return n;
}

static struct node_conn *
take_idle(struct engine *e, const struct snap_node *node, bool careful)
{
	struct node_pool *pool = &e->pools[node->target];
	struct node_conn *n;

	while ((n = LIST_FIRST(pool)) != NULL) {
		/* The node may have moved since. */
		if (n->way == node->way && (!careful || alive(n)))
			return take(n);
		node_conn_drop(n);
	}
	return NULL;
}

static struct node_conn *
take_kept(struct client *c, const struct snap_node *node, uint64_t key,
    bool careful)
{
	struct node_conn *n, *next;

	for (n = LIST_FIRST(&c->kept); n != NULL; n = next) {
		next = LIST_NEXT(n, in_pool);
		if (n->target != node->target || n->key != key)
			continue;
		if (n->way == node->way && (!careful || alive(n)))
			return take(n);
		node_conn_drop(n);
	}
	return NULL;
}

/* Its FIN may be there already, behind events not yet delivered. */
static bool
alive(struct node_conn *n)
{
	char byte;

	return recv(n->s.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 &&
	    errno == EAGAIN;
}

/* When descriptors are short, idle connections make room. */
static int
connect_socket(struct engine *e, const struct snapshot *snap,
    const struct snap_node *node)
{
	int fd;

	while ((fd = dial_node(snap, node)) == -1 &&
	    (errno == EMFILE || errno == ENFILE) &&
	    !TAILQ_EMPTY(&e->idle_nodes))
		node_conn_drop(TAILQ_FIRST(&e->idle_nodes));
	return fd;
}

/* A place there is ours, but the node may keep it for a connection that is
 * idle in another worker. */
static void
count_new(struct engine *e, const struct snap_node *node)
{
	struct sb_target *t = sb_target(e->sb, node->target);
	_Atomic uint32_t *conns = sb_conns(e->sb, t);

	sb_add(&t->connects, 1);
	sb_hold(conns, e->slot);
	if (node->maxconn > 0 && sb_active(e->sb, conns) > node->maxconn)
		sb_plead(t);
}

static struct node_conn *
connect_new(struct engine *e, const struct snapshot *snap,
    const struct snap_node *node)
{
	int fd = connect_socket(e, snap, node);
	struct node_conn *n;

	if (fd == -1)
		return NULL;
	if ((n = spare_take(&e->spare_nodes, sizeof(*n))) == NULL) {
		close(fd);
		return NULL;
	}
	memset(n, 0, sizeof(*n));
	if (sock_open(&n->s, fd, &e->loop, node_ready, n) == -1) {
		spare_put(&e->spare_nodes, n);
		errno = ENOMEM;
		return NULL;
	}
	n->e = e;
	n->way = node->way;
	n->target = node->target;
	n->state = NODE_CONNECTING;
	count_new(e, node);
	atomic_store_explicit(&e->row->node_conns, ++e->n_nodes,
	    memory_order_relaxed);
	return n;
}

int
node_conn_connected(struct node_conn *n)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (n->state != NODE_CONNECTING)
		return 1;
	if (!n->s.writable)
		return 0;
	if (getsockopt(n->s.fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		return -1;
	if (error != 0) {
		errno = error;
		return -1;
	}
	n->state = NODE_BUSY;
	return 1;
}

/* A few: the client's next request may be for another node, and for this one
 * again only later. */
static void
keep(struct node_conn *n, struct client *c)
{
	struct node_conn *other, *oldest = NULL;
	unsigned count = 0;

	LIST_FOREACH (other, &c->kept, in_pool) {
		oldest = other;
		count++;
	}
	if (count == KEPT_MAX)
		node_conn_drop(oldest);
	LIST_INSERT_HEAD(&c->kept, n, in_pool);
}

void
node_conn_put(struct node_conn *n)
{
	struct engine *e = n->e;
	uint32_t max = e->snap->head->settings.pool_max;

	/* Anything that can be read now is a FIN or was never asked for.  A
	 * body read to its last byte leaves open whether there is more. */
	if (n->s.closed || e->draining || max == 0 ||
	    (n->s.readable && !alive(n)) ||
	    sb_hear(sb_target(e->sb, n->target))) {
		node_conn_drop(n);
		return;
	}
	n->s.readable = false;
	if (e->n_idle >= max)
		node_conn_drop(TAILQ_FIRST(&e->idle_nodes));
	buf_give(&e->bufs, &n->in);
	if (n->key != 0)
		keep(n, n->client);
	else
		LIST_INSERT_HEAD(&e->pools[n->target], n, in_pool);
	n->client = NULL;
	n->state = NODE_IDLE;
	n->since_ms = e->now_ms;
	e->n_idle++;
	TAILQ_INSERT_TAIL(&e->idle_nodes, n, in_idle);
}

void
node_conn_drop(struct node_conn *n)
{
	struct engine *e = n->e;

	if (n->state == NODE_DEAD)
		return;
	if (n->state == NODE_IDLE)
		leave_pool(n);
	n->state = NODE_DEAD;
	n->client = NULL;
	sb_release(sb_conns(e->sb, sb_target(e->sb, n->target)), e->slot);
	buf_give(&e->bufs, &n->in);
	sock_close(&n->s);
	n->next = e->dead_nodes;
	e->dead_nodes = n;
	atomic_store_explicit(&e->row->node_conns, --e->n_nodes,
	    memory_order_relaxed);
	engine_resume(e);
}

void
node_conn_sweep(struct engine *e, bool all)
{
	int64_t before = e->now_ms - e->snap->head->settings.pool_ms;
	struct node_conn *n, *next;

	while ((n = TAILQ_FIRST(&e->idle_nodes)) != NULL &&
	    (all || n->since_ms <= before))
		node_conn_drop(n);
	for (n = TAILQ_FIRST(&e->idle_nodes); n != NULL; n = next) {
		next = TAILQ_NEXT(n, in_idle);
		if (sb_hear(sb_target(e->sb, n->target)))
			node_conn_drop(n);
	}
}

static void
node_ready(int fd, short what, void *arg)
{
	struct node_conn *n = arg;
	struct engine *e = n->e;

	(void)fd;
	engine_enter(e);
	sock_event(&n->s, what);
	if (n->client != NULL)
		client_run(n->client);
	else if (n->s.readable)
		node_conn_drop(n); /* a FIN, or bytes nobody asked for */
	engine_leave(e);
}
