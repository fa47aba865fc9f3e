/*
 * snapshot_plan.c: see snapshot_plan.h.
 *
 * Records are collected in growing arrays, texts in one blob whose offsets
 * count from the blob's start; plan_write() lays the tables one after another
 * and moves the offsets by where the blob came to stand.
 */
#include "proxyd/process/snapshot_plan.h"

#include <sys/mman.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

/* A growing array. */
struct rows {
	char *data;
	size_t n, room, row;
};

struct snapshot_plan {
	struct snap_head head;
	struct rows roles, nodes, node_roles, sites, hosts, text;
	struct rows peers[PLAN_PEERS]; /* by enum plan_peers */
};

struct layout {
	char *image;
	uint32_t size, text;
};

static struct snap_peers *peers_of(struct snap_head *, enum plan_peers);
static int add(struct rows *, const void *row, size_t n, struct err *);
static int add_text(struct snapshot_plan *, const char *, struct snap_text *,
    struct err *);
static int lay_out(struct snapshot_plan *, struct layout *, struct err *);
static void fill(struct snapshot_plan *, struct layout *);
static int to_memfd(const struct layout *, int *fd, struct err *);

struct snapshot_plan *
plan_new(int64_t revision, struct err *e)
{
	struct snapshot_plan *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for a snapshot");
		return NULL;
	}
	p->roles.row = sizeof(struct snap_role);
	p->nodes.row = sizeof(struct snap_node);
	p->node_roles.row = sizeof(uint32_t);
	p->sites.row = sizeof(struct snap_site);
	p->hosts.row = sizeof(struct snap_host);
	for (size_t i = 0; i < PLAN_PEERS; i++)
		p->peers[i].row = sizeof(struct cidr);
	p->text.row = 1;
	p->head.version = SNAP_VERSION;
	p->head.revision = revision;
	p->head.default_site = SNAP_NONE;
	memcpy(p->head.magic, SNAP_MAGIC, sizeof(p->head.magic));
	plan_default_settings(&p->head.settings);
	if (add_text(p, "muster", &p->head.settings.via, e) == -1) {
		plan_free(p);
		return NULL;
	}
	return p;
}

void
plan_free(struct snapshot_plan *p)
{
	if (p == NULL)
		return;
	free(p->roles.data);
	free(p->nodes.data);
	free(p->node_roles.data);
	free(p->sites.data);
	free(p->hosts.data);
	for (size_t i = 0; i < PLAN_PEERS; i++)
		free(p->peers[i].data);
	free(p->text.data);
	free(p);
}

void
plan_default_settings(struct snap_settings *s)
{
	*s = (struct snap_settings){
		.header_ms = 10000,
		.keepalive_ms = 60000,
		.connect_ms = 3000,
		.response_ms = 60000,
		.send_ms = 60000,
		.tunnel_ms = 3600000,
		.linger_ms = 2000,
		/* Apache closes after 5 s; we should be the first to. */
		.pool_ms = 4000,
		.pool_max = 512,
		.body_rate = 500,
		.body_grace_ms = 10000,
		.fields_size = 64 << 10,
		.fields_max = 100,
		.target_size = 8 << 10,
		.keepalive_requests = 0,
		.retries = 2,
		.retry_percent = 10,
		.eject_after = 5,
		.eject_ms = 5000,
		.eject_max_ms = 300000,
		.max_clients = 100000,
		.log_format = SNAP_LOG_OFF,
		.splice = 1,
		.gzip_level = 4,
		.brotli_level = 4,
		.compress_memory = 64 << 20,
	};
}

int
plan_settings(struct snapshot_plan *p, const struct snap_settings *s,
    const char *via, struct err *e)
{
	struct snap_text name;

	if (add_text(p, via, &name, e) == -1)
		return -1;
	p->head.settings = *s;
	p->head.settings.via = name;
	return 0;
}

int
plan_peer(struct snapshot_plan *p, enum plan_peers kind, const struct cidr *c,
    struct err *e)
{
	if (c != NULL)
		return add(&p->peers[kind], c, 1, e);
	peers_of(&p->head, kind)->local = 1;
	return 0;
}

int
plan_text(struct snapshot_plan *p, const char *s, struct snap_text *t,
    struct err *e)
{
	return add_text(p, s, t, e);
}

int
plan_role(struct snapshot_plan *p, const struct plan_role *role,
    uint32_t *index, struct err *e)
{
	struct snap_role r = role->r;

	if (add_text(p, role->name, &r.name, e) == -1 ||
	    add_text(p, role->cookie, &r.cookie, e) == -1 ||
	    add_text(p, role->check_text, &r.check_text, e) == -1 ||
	    add(&p->roles, &r, 1, e) == -1)
		return -1;
	*index = (uint32_t)p->roles.n - 1;
	return 0;
}

int
plan_node(struct snapshot_plan *p, uint32_t role, const struct plan_node *node,
    struct err *e)
{
	struct snap_node n = node->n;

	if (add_text(p, node->name, &n.name, e) == -1 ||
	    add_text(p, node->path, &n.path, e) == -1 ||
	    add(&p->node_roles, &role, 1, e) == -1)
		return -1;
	if (add(&p->nodes, &n, 1, e) == 0)
		return 0;
	p->node_roles.n--;
	return -1;
}

int
plan_site(struct snapshot_plan *p, const struct plan_site *site,
    uint32_t *index, struct err *e)
{
	struct snap_site s = site->s;

	if (add_text(p, site->name, &s.name, e) == -1 ||
	    add_text(p, site->owner, &s.owner, e) == -1 ||
	    add_text(p, site->home, &s.home, e) == -1 ||
	    add_text(p, site->static_ext, &s.static_ext, e) == -1 ||
	    add_text(p, site->cache_control, &s.cache_control, e) == -1 ||
	    add_text(p, site->charset, &s.charset, e) == -1 ||
	    add_text(p, site->compress_types, &s.compress_types, e) == -1 ||
	    add(&p->sites, &s, 1, e) == -1)
		return -1;
	*index = (uint32_t)p->sites.n - 1;
	return 0;
}

int
plan_host(struct snapshot_plan *p, uint32_t site, const char *pattern,
    struct err *e)
{
	struct snap_host h = { .hash = SNAP_HASH_START, .site = site };

	if (*pattern == '*')
		pattern++;
	for (size_t i = strlen(pattern); i-- > 0;)
		h.hash = snapshot_hash(h.hash, pattern[i]);
	if (add_text(p, pattern, &h.pattern, e) == -1)
		return -1;
	return add(&p->hosts, &h, 1, e);
}

void
plan_default_site(struct snapshot_plan *p, uint32_t site)
{
	p->head.default_site = site;
}

int
plan_write(struct snapshot_plan *p, int *fd, struct err *e)
{
	struct layout l = { NULL, 0, 0 };
	int rv;

	if (lay_out(p, &l, e) == -1)
		return -1;
	fill(p, &l);
	rv = to_memfd(&l, fd, e);
	free(l.image);
	return rv;
}

static struct snap_peers *
peers_of(struct snap_head *h, enum plan_peers kind)
{
	return kind == PLAN_TRUSTED ? &h->trusted : &h->senders;
}

static int
add(struct rows *rows, const void *row, size_t n, struct err *e)
{
	size_t need = rows->n + n;

	if (need > rows->room) {
		size_t room = need < 64 ? 64 : need + need / 2;
		char *bigger = reallocarray(rows->data, room, rows->row);

		if (bigger == NULL)
			return err_set(e, ERR_LOCAL,
			    "out of memory for a snapshot");
		rows->data = bigger;
		rows->room = room;
	}
	memcpy(rows->data + rows->n * rows->row, row, n * rows->row);
	rows->n = need;
	return 0;
}

static int
add_text(struct snapshot_plan *p, const char *s, struct snap_text *t,
    struct err *e)
{
	struct snap_text text = { 0, 0 };

	if (s != NULL && *s != '\0') {
		text.off = (uint32_t)p->text.n;
		text.len = (uint32_t)strlen(s);
		if (add(&p->text, s, text.len + 1UL, e) == -1)
			return -1;
	}
	*t = text;
	return 0;
}

/* Takes room for `n` rows at the end; 0 is never a table's place. */
static uint32_t
place(uint64_t *size, size_t n, size_t row)
{
	uint64_t off = (*size + 7) & ~7ULL;

	*size = off + n * row;
	return (uint32_t)off;
}

static int
lay_out(struct snapshot_plan *p, struct layout *l, struct err *e)
{
	struct snap_head *h = &p->head;
	uint64_t size = sizeof(*h);

	h->n_roles = (uint32_t)p->roles.n;
	h->n_nodes = (uint32_t)p->nodes.n;
	h->n_sites = (uint32_t)p->sites.n;
	h->n_hosts = 16;
	while (h->n_hosts < p->hosts.n * 2)
		h->n_hosts *= 2;
	h->roles_off = place(&size, h->n_roles, p->roles.row);
	h->nodes_off = place(&size, h->n_nodes, p->nodes.row);
	h->sites_off = place(&size, h->n_sites, p->sites.row);
	for (int i = 0; i < PLAN_PEERS; i++) {
		struct snap_peers *to = peers_of(h, (enum plan_peers)i);

		to->n = (uint32_t)p->peers[i].n;
		to->off = place(&size, to->n, p->peers[i].row);
	}
	h->hosts_off = place(&size, h->n_hosts, p->hosts.row);
	l->text = place(&size, p->text.n, 1);
	if (size > UINT32_MAX)
		return err_set(e, ERR_LOCAL,
		    "a snapshot would take %llu bytes, over 4 GiB",
		    (unsigned long long)size);
	h->size = l->size = (uint32_t)size;
	if ((l->image = calloc(1, size)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a snapshot");
	return 0;
}

static void
move_text(const struct layout *l, struct snap_text *t)
{
	if (t->len != 0)
		t->off += l->text;
}

/* Nodes stand role by role, so that a role's are one slice. */
static void
fill_roles(struct snapshot_plan *p, struct layout *l)
{
	struct snap_role *roles = (void *)(l->image + p->head.roles_off);
	struct snap_node *nodes = (void *)(l->image + p->head.nodes_off);
	const uint32_t *owner = (void *)p->node_roles.data;
	uint32_t n = 0;

	for (uint32_t r = 0; r < p->head.n_roles; r++) {
		memcpy(&roles[r], (struct snap_role *)p->roles.data + r,
		    sizeof(*roles));
		move_text(l, &roles[r].name);
		move_text(l, &roles[r].cookie);
		move_text(l, &roles[r].check_text);
		roles[r].first_node = n;
		for (size_t i = 0; i < p->nodes.n; i++) {
			if (owner[i] != r)
				continue;
			nodes[n] = ((struct snap_node *)p->nodes.data)[i];
			move_text(l, &nodes[n].path);
			move_text(l, &nodes[n++].name);
		}
		roles[r].n_nodes = n - roles[r].first_node;
	}
}

static void
fill_hosts(struct snapshot_plan *p, struct layout *l)
{
	struct snap_host *hosts = (void *)(l->image + p->head.hosts_off);
	const struct snap_host *h = (void *)p->hosts.data;
	uint32_t mask = p->head.n_hosts - 1;

	for (size_t n = p->hosts.n; n > 0; n--, h++) {
		uint32_t i = (uint32_t)(h->hash >> 20) & mask;

		while (hosts[i].pattern.len != 0)
			i = (i + 1) & mask;
		hosts[i] = *h;
		move_text(l, &hosts[i].pattern);
	}
}

static void
fill(struct snapshot_plan *p, struct layout *l)
{
	struct snap_head *h = (void *)l->image;
	struct snap_site *sites = (void *)(l->image + p->head.sites_off);

	*h = p->head;
	move_text(l, &h->settings.via);
	fill_roles(p, l);
	fill_hosts(p, l);
	if (p->sites.n > 0)
		memcpy(sites, p->sites.data, p->sites.n * sizeof(*sites));
	for (size_t i = 0; i < p->sites.n; i++) {
		move_text(l, &sites[i].name);
		move_text(l, &sites[i].owner);
		move_text(l, &sites[i].home);
		move_text(l, &sites[i].disabled_page);
		move_text(l, &sites[i].error_page);
		move_text(l, &sites[i].static_ext);
		move_text(l, &sites[i].hsts);
		move_text(l, &sites[i].cache_control);
		move_text(l, &sites[i].compress_types);
		move_text(l, &sites[i].charset);
	}
	for (int i = 0; i < PLAN_PEERS; i++)
		if (p->peers[i].n > 0)
			memcpy(l->image + peers_of(h, (enum plan_peers)i)->off,
			    p->peers[i].data, p->peers[i].n * p->peers[i].row);
	if (p->text.n > 0)
		memcpy(l->image + l->text, p->text.data, p->text.n);
}

static int
to_memfd(const struct layout *l, int *fd, struct err *e)
{
	int f =
	    memfd_create("muster-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (f == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a snapshot");
	if (io_write_n(f, l->image, l->size) == -1 ||
	    fcntl(f, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) ==
		-1) {
		err_errno(e, ERR_LOCAL, "cannot write a snapshot");
		close(f);
		return -1;
	}
	*fd = f;
	return 0;
}
