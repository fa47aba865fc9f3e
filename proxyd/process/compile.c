/*
 * compile.c: see compile.h.
 *
 * Roles come first (a node names its roles, a site its role), so each walk
 * finds what the one before it has left in `struct compile`.
 */
#include "proxyd/process/compile.h"

#include <sys/sysinfo.h>
#include <sodium.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/hsts.h"
#include "proxyd/limits/site_limits.h"
#include "proxyd/process/pages.h"
#include "proxyd/process/snapshot_plan.h"

struct compiled_role {
	char name[NAME_MAX_LEN + 1];
	int64_t id, maxconn, port;
	uint32_t proxy, index;
};

struct compile {
	struct snapshot_plan *plan;
	struct pages pages;
	char hsts[HSTS_VALUE_MAX]; /* of the site before: most say the same */
	struct snap_text hsts_text;
	struct scoreboard *board;
	struct row_use *use;
	const struct settings *settings;
	struct compiled_role *roles;
	size_t n_roles;
	struct err *e;
};

static int add_settings(struct compile *);
static int add_peers(struct compile *, enum plan_peers, const char *list);
static role_fn add_role;
static node_fn add_node;
static site_fn add_site;
static int add_node_in_role(struct compile *, const struct node *,
    const struct node_role *);
static int add_hosts(struct compile *, uint32_t index, const struct site *);
static uint64_t way_of(const char *place, int64_t port, uint32_t proxy);
static const struct compiled_role *role_of(const struct compile *,
    const char *name);
static void set_balance(struct snap_role *, const struct balance *);
static void set_check(struct snap_role *, const struct health *);
static int set_hsts(struct compile *, struct snap_site *, const char *text);
static uint32_t first_port(const char *list);
static void set_static(struct snap_site *, const struct site *,
    const struct settings *);

int
compile_snapshot(struct source *s, struct scoreboard *board,
    struct row_use *use, int64_t revision, struct settings *settings, int *fd,
    struct err *e)
{
	struct compile c = { .board = board,
		.use = use,
		.settings = settings,
		.e = e };
	int rv = -1;

	if (source_begin(s, e) == -1)
		return -1;
	row_use_begin(use);
	if ((c.plan = plan_new(revision, e)) != NULL &&
	    source_settings(s, settings, e) == 0 && add_settings(&c) == 0 &&
	    source_each_role(s, add_role, &c, e) == 0 &&
	    source_each_node(s, add_node, &c, e) == 0 &&
	    source_each_site(s, add_site, &c, e) == 0)
		rv = plan_write(c.plan, fd, e);
	source_end(s);
	plan_free(c.plan);
	pages_free(&c.pages);
	free(c.roles);
	return rv;
}

int64_t
compile_id(const char *text)
{
	uint8_t hash[16];
	int64_t id;

	crypto_generichash(hash, sizeof(hash), (const uint8_t *)text,
	    strlen(text), NULL, 0);
	memcpy(&id, hash, sizeof(id));
	id &= INT64_MAX;
	return id != 0 ? id : 1;
}

static int
add_settings(struct compile *c)
{
	const struct settings *s = c->settings;
	struct snap_settings out;

	plan_default_settings(&out);
	out.header_ms = (uint32_t)s->header_timeout_ms;
	out.keepalive_ms = (uint32_t)s->keepalive_ms;
	out.connect_ms = (uint32_t)s->connect_timeout_ms;
	out.response_ms = (uint32_t)s->response_timeout_ms;
	out.send_ms = (uint32_t)s->send_timeout_ms;
	out.tunnel_ms = (uint32_t)s->tunnel_idle_ms;
	out.pool_ms = (uint32_t)s->pool_idle_ms;
	out.pool_max = (uint32_t)s->pool_idle;
	out.body_rate = (uint32_t)s->body_min_rate;
	out.body_grace_ms = (uint32_t)s->body_timeout_ms;
	out.fields_size = (uint32_t)s->header_size;
	out.fields_max = (uint32_t)s->header_fields;
	out.target_size = (uint32_t)s->target_size;
	out.keepalive_http10 = (uint32_t)s->http10_keepalive;
	out.keepalive_requests = (uint32_t)s->keepalive_requests;
	out.retries = (uint32_t)s->retries;
	out.retry_percent = (uint32_t)s->retry_budget;
	out.eject_after = (uint32_t)s->eject_failures;
	out.eject_ms = (uint32_t)s->eject_ms;
	out.eject_max_ms = (uint32_t)s->eject_max_ms;
	out.max_clients = (uint32_t)s->max_connections;
	out.spool_size = (uint64_t)s->spool_size /
	    (s->workers != 0 ? (unsigned)s->workers : (unsigned)get_nprocs());
	out.max_client_connections = (uint32_t)s->max_client_connections;
	out.gzip_level = (uint32_t)s->gzip_level;
	out.brotli_level = (uint32_t)s->brotli_level;
	out.compress_memory = (uint64_t)s->compress_memory;
	out.log_format = *s->access_log == '\0' ? SNAP_LOG_OFF :
	    s->access_log_format == LOG_COMMON	? SNAP_LOG_COMMON :
	    s->access_log_format == LOG_JSON	? SNAP_LOG_JSON :
						  SNAP_LOG_COMBINED;
	out.tls_profile = (uint32_t)s->tls_profile;
	out.https_port = first_port(s->https_listen);
	if (plan_settings(c->plan, &out, "muster", c->e) == -1)
		return -1;
	if (add_peers(c, PLAN_TRUSTED, s->trusted) == -1)
		return -1;
	return add_peers(c, PLAN_SENDERS, s->proxy_protocol);
}

static int
add_peers(struct compile *c, enum plan_peers kind, const char *list)
{
	char item[64];
	struct cidr cidr;

	for (const char *p = list; *p != '\0';) {
		size_t len = strcspn(p, " ");
		bool local;

		if (len >= sizeof(item))
			return err_set(c->e, ERR_CORRUPT,
			    "an address range is too long: %.80s", p);
		memcpy(item, p, len);
		item[len] = '\0';
		local = strcmp(item, SETTING_PEER_UNIX) == 0;
		if ((!local && cidr_parse(item, &cidr, c->e) == -1) ||
		    plan_peer(c->plan, kind, local ? NULL : &cidr, c->e) == -1)
			return -1;
		p += len + (p[len] == ' ');
	}
	return 0;
}

/* Of a list of addresses; 0: it has none. */
static uint32_t
first_port(const char *list)
{
	size_t len = strcspn(list, " ");
	char item[ADDR_TEXT_MAX];
	struct addr a;
	struct err e;

	if (len >= sizeof(item))
		return 0;
	memcpy(item, list, len);
	item[len] = '\0';
	return addr_parse(item, 0, &a, &e) == 0 ? addr_port(&a) : 0;
}

static int
add_role(const struct role *r, void *arg)
{
	struct compile *c = arg;
	static const uint32_t proxies[] = {
		[ROLE_PROXY_OFF] = SNAP_PROXY_OFF,
		[ROLE_PROXY_V1] = SNAP_PROXY_V1,
		[ROLE_PROXY_V2] = SNAP_PROXY_V2,
	};
	struct compiled_role *roles, *row;
	struct plan_role out = { .name = r->name };
	struct balance balance;
	struct health health;

	if (balance_parse(r->balance, &balance, c->e) == -1 ||
	    health_parse(r->health, &health, c->e) == -1)
		return -1;
	roles = reallocarray(c->roles, c->n_roles + 1, sizeof(*roles));
	if (roles == NULL)
		return err_set(c->e, ERR_LOCAL, "out of memory for roles");
	c->roles = roles;
	row = &roles[c->n_roles++];
	memcpy(row->name, r->name, sizeof(row->name));
	row->id = compile_id(r->name);
	row->port = r->port;
	row->proxy = out.r.proxy = proxies[r->proxy_protocol];
	row->maxconn = r->maxconn;
	out.r.id = row->id;
	out.r.target = sb_target_row(c->board, 0, row->id);
	if (out.r.target == SB_NONE)
		return err_set(c->e, ERR_LOCAL,
		    "the scoreboard has no room for role %s", r->name);
	row_use_target(c->use, out.r.target);
	out.r.queue_max = (uint32_t)r->queue;
	out.r.queue_ms = (uint32_t)r->queue_timeout_ms;
	out.r.slow_start_ms = (uint32_t)r->slow_start_ms;
	out.r.check_ms = (uint32_t)r->interval_ms;
	out.r.check_limit_ms = (uint32_t)r->check_timeout_ms;
	out.r.rise = (uint32_t)r->rise;
	out.r.fall = (uint32_t)r->fall;
	out.cookie = balance.cookie;
	out.check_text =
	    health.kind == HEALTH_MYSQL ? health.user : health.path;
	set_balance(&out.r, &balance);
	set_check(&out.r, &health);
	return plan_role(c->plan, &out, &row->index, c->e);
}

static int
add_node(const struct node *n, void *arg)
{
	struct compile *c = arg;

	for (size_t i = 0; i < n->n_roles; i++)
		if (add_node_in_role(c, n, &n->roles[i]) == -1)
			return -1;
	return 0;
}

static int
add_node_in_role(struct compile *c, const struct node *n,
    const struct node_role *nr)
{
	static const uint32_t states[] = {
		[NODE_UP] = SNAP_NODE_UP,
		[NODE_DRAIN] = SNAP_NODE_DRAIN,
		[NODE_MAINTENANCE] = SNAP_NODE_MAINTENANCE,
	};
	const struct compiled_role *role = role_of(c, nr->name);
	struct plan_node out = { .name = n->name,
		.path = addr_unix_path(n->addr) };
	int64_t port;

	if (role == NULL)
		return 0;
	port = nr->port != 0 ? nr->port : role->port;
	if (port == 0 && out.path == NULL)
		return 0; /* a role that the proxy does not balance */
	if (out.path == NULL &&
	    addr_parse(n->addr, (uint16_t)port, &out.n.addr, c->e) == -1)
		return err_wrap(c->e, "node %s", n->name);
	out.n.way = way_of(n->addr, port, role->proxy);
	out.n.id = compile_id(n->uuid);
	out.n.target = sb_target_row(c->board, out.n.id, role->id);
	if (out.n.target == SB_NONE)
		return err_set(c->e, ERR_LOCAL,
		    "the scoreboard has no room for node %s", n->name);
	row_use_target(c->use, out.n.target);
	out.n.weight = (uint32_t)n->weight;
	out.n.maxconn =
	    (uint32_t)(n->maxconn != 0 ? n->maxconn : role->maxconn);
	out.n.state = states[n->state];
	sb_want(sb_target(c->board, out.n.target), out.n.state,
	    clock_mono_ms());
	return plan_node(c->plan, role->index, &out, c->e);
}

static int
add_site(const struct site *site, void *arg)
{
	struct compile *c = arg;
	const struct compiled_role *role = role_of(c, site->role);
	struct plan_site out = {
		.name = site->name,
		.owner = site->owner,
		.home = site->home,
		.static_ext = site->static_ext,
		.cache_control = site->cache_control,
		.charset = site->charset,
		.compress_types = site->compress_types,
		.s.id = site->id,
		.s.role = role != NULL ? role->index : SNAP_NONE,
		.s.flags = site->enabled ? 0 : SNAP_SITE_DISABLED,
		.s.share = site->share > 0 ? (uint32_t)site->share : 1,
		.s.max_active = (uint32_t)site->max_active,
		.s.queue_ms = (uint32_t)site->queue_timeout_ms,
		.s.max_body =
		    (uint64_t)(site->max_body != 0 ? site->max_body :
						     c->settings->body_size),
		.s.response_buffer = (uint64_t)(site->response_buffer >= 0 ?
			site->response_buffer :
			c->settings->response_buffer),
		.s.compress = (uint32_t)site->compress,
		.s.compress_min = (uint64_t)site->compress_min,
		.s.account = sb_account_row(c->board, SB_SITE, site->id),
		.s.owner_account = SB_NONE,
	};
	uint32_t index;

	if (site->https_redirect)
		out.s.flags |= SNAP_SITE_HTTPS;
	if (site->request_buffering)
		out.s.flags |= SNAP_SITE_COLLECTS;
	set_static(&out.s, site, c->settings);
	if (*site->owner != '\0')
		out.s.owner_account =
		    sb_account_row(c->board, SB_OWNER, compile_id(site->owner));
	if (out.s.account != SB_NONE)
		site_limits_set(c->board, out.s.account, site);
	row_use_account(c->use, out.s.account);
	row_use_account(c->use, out.s.owner_account);
	if (pages_get(&c->pages, c->plan, site->enabled ? "" : site->page,
		&out.s.disabled_page, c->e) == -1 ||
	    pages_get(&c->pages, c->plan, site->error_page, &out.s.error_page,
		c->e) == -1 ||
	    set_hsts(c, &out.s, site->hsts) == -1 ||
	    plan_site(c->plan, &out, &index, c->e) == -1 ||
	    add_hosts(c, index, site) == -1)
		return -1;
	if (strcmp(site->name, c->settings->default_site) == 0)
		plan_default_site(c->plan, index);
	return 0;
}

static int
set_hsts(struct compile *c, struct snap_site *s, const char *text)
{
	char value[HSTS_VALUE_MAX], line[HSTS_VALUE_MAX + 40];

	if (*text == '\0')
		return 0;
	if (hsts_value(text, value, c->e) == -1)
		return err_wrap(c->e, "hsts");
	if (strcmp(value, c->hsts) != 0) {
		snprintf(line, sizeof(line),
		    "Strict-Transport-Security: %s\r\n", value);
		if (plan_text(c->plan, line, &c->hsts_text, c->e) == -1)
			return -1;
		memcpy(c->hsts, value, sizeof(value));
	}
	s->hsts = c->hsts_text;
	return 0;
}

static int
add_hosts(struct compile *c, uint32_t index, const struct site *site)
{
	char host[HOST_MAX_LEN + 1];

	if (plan_host(c->plan, index, site->name, c->e) == -1)
		return -1;
	if (site->aliases == NULL)
		return 0;
	for (const char *p = site->aliases; *p != '\0';) {
		size_t len = strcspn(p, " ");

		if (len >= sizeof(host))
			return err_set(c->e, ERR_CORRUPT,
			    "site %s has an alias that is too long",
			    site->name);
		memcpy(host, p, len);
		host[len] = '\0';
		if (plan_host(c->plan, index, host, c->e) == -1)
			return -1;
		p += len + (p[len] == ' ');
	}
	return 0;
}

static uint64_t
way_of(const char *place, int64_t port, uint32_t proxy)
{
	char text[ADDR_PLACE_MAX + 64];

	snprintf(text, sizeof(text), "%s %" PRId64 " %u", place, port, proxy);
	return (uint64_t)compile_id(text);
}

static const struct compiled_role *
role_of(const struct compile *c, const char *name)
{
	for (size_t i = 0; i < c->n_roles; i++)
		if (strcmp(c->roles[i].name, name) == 0)
			return &c->roles[i];
	return NULL;
}

static void
set_balance(struct snap_role *r, const struct balance *b)
{
	static const uint32_t kinds[] = {
		[BALANCE_LEAST_CONN] = SNAP_LEAST_CONN,
		[BALANCE_ROUND_ROBIN] = SNAP_ROUND_ROBIN,
		[BALANCE_HASH_IP] = SNAP_HASH_IP,
		[BALANCE_HASH_URI] = SNAP_HASH_URI,
		[BALANCE_HASH_COOKIE] = SNAP_HASH_COOKIE,
		[BALANCE_STICKY] = SNAP_STICKY,
	};

	r->balance = kinds[b->kind];
}

static void
set_check(struct snap_role *r, const struct health *h)
{
	static const uint32_t kinds[] = {
		[HEALTH_NONE] = SNAP_CHECK_NONE,
		[HEALTH_TCP] = SNAP_CHECK_TCP,
		[HEALTH_HTTP] = SNAP_CHECK_HTTP,
		[HEALTH_MYSQL] = SNAP_CHECK_MYSQL,
	};

	r->check = kinds[h->kind];
	r->check_low = h->status_min;
	r->check_high = h->status_max;
}

static void
set_static(struct snap_site *out, const struct site *site,
    const struct settings *settings)
{
	const char *texts[] = { site->home, site->static_ext,
		site->cache_control, site->charset, site->compress_types };
	const int64_t numbers[] = { site->compress, site->compress_min,
		settings->gzip_level, settings->brotli_level };
	crypto_generichash_state hash;
	uint8_t key[crypto_generichash_BYTES_MIN];

	if (!site->use_static || *site->home == '\0')
		return;
	out->flags |= SNAP_SITE_STATIC;
	if (site->owner_check)
		out->flags |= SNAP_SITE_OWNER_CHECK;
	crypto_generichash_init(&hash, NULL, 0, crypto_generichash_BYTES_MIN);
	for (size_t i = 0; i < nitems(texts); i++)
		crypto_generichash_update(&hash, (const uint8_t *)texts[i],
		    strlen(texts[i]) + 1);
	crypto_generichash_update(&hash, (const uint8_t *)&out->flags,
	    sizeof(out->flags));
	if (site->compress != 0)
		crypto_generichash_update(&hash, (const uint8_t *)numbers,
		    sizeof(numbers));
	crypto_generichash_final(&hash, key, sizeof(key));
	memcpy(&out->files_key, key, sizeof(out->files_key));
}
