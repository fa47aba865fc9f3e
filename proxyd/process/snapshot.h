/*
 * snapshot.h: everything a worker must know to serve, as one immutable image.
 *
 * The master compiles the registry (or the roster) into an image in a sealed
 * memfd (snapshot_plan.h); workers map it and switch with one pointer.  The
 * image holds offsets, no pointers, so that it means the same in every
 * process.  Nothing in it ever changes: what moves lives in the scoreboard,
 * whose rows the records here name.  Look-ups take no lock and do not grow
 * with the number of sites.
 */
#ifndef MUSTER_SNAPSHOT_H
#define MUSTER_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/err.h"

#define SNAP_MAGIC   "mstrsnap" /* 8 bytes, no NUL */
#define SNAP_VERSION 1
#define SNAP_NONE    UINT32_MAX /* no such row, site, role */

/* Text in the image; a NUL stands behind it.  off 0, len 0: none. */
struct snap_text {
	uint32_t off;
	uint32_t len;
};

enum snap_balance {
	SNAP_LEAST_CONN,
	SNAP_ROUND_ROBIN,
	SNAP_HASH_IP,
	SNAP_HASH_URI,
	SNAP_HASH_COOKIE,
	SNAP_STICKY,
};

enum snap_check {
	SNAP_CHECK_NONE,
	SNAP_CHECK_TCP,
	SNAP_CHECK_HTTP,
	SNAP_CHECK_MYSQL,
};

/* What a connection to a node begins with. */
enum snap_proxy { SNAP_PROXY_OFF, SNAP_PROXY_V1, SNAP_PROXY_V2 };

/* What the administrator wants of a node; what it is worth just now is the
 * scoreboard's. */
enum snap_node_state {
	SNAP_NODE_UP,
	SNAP_NODE_DRAIN,       /* finishes what it has, keeps its sticky */
	SNAP_NODE_MAINTENANCE, /* gets nothing */
};

/* One node in one role. */
struct snap_node {
	int64_t id; /* the registry's, stable over renames */
	struct snap_text name;
	struct addr addr;      /* of a Unix socket: none */
	struct snap_text path; /* of a Unix socket; else none */
	/* Of all that decides what a connection to it is: one that was made
	 * for another way does not serve this one. */
	uint64_t way;
	uint32_t target;  /* its row in the scoreboard */
	uint32_t weight;  /* 0..1000; 0: nothing new */
	uint32_t maxconn; /* requests at a time; 0: no bound */
	uint32_t state;	  /* enum snap_node_state */
};

struct snap_role {
	int64_t id;
	struct snap_text name;
	uint32_t first_node, n_nodes; /* a slice of the node table */
	uint32_t target;	      /* the role's own row: its queue */
	uint32_t balance;	      /* enum snap_balance */
	struct snap_text cookie;      /* hash:cookie=NAME, sticky=NAME */
	uint32_t proxy;		      /* enum snap_proxy */
	uint32_t queue_max;	      /* requests that may wait, each worker */
	uint32_t queue_ms;
	uint32_t slow_start_ms;
	uint32_t check;			/* enum snap_check */
	struct snap_text check_text;	/* HTTP: the path; MySQL: a user */
	uint32_t check_low, check_high; /* statuses that are well */
	uint32_t check_ms, check_limit_ms, rise, fall;
};

enum snap_site_flag {
	SNAP_SITE_DISABLED = 1 << 0,	/* 503 and its page */
	SNAP_SITE_STATIC = 1 << 1,	/* plain files of its home are ours */
	SNAP_SITE_OWNER_CHECK = 1 << 2, /* only those of the home's owner */
	SNAP_SITE_COLLECTS = 1 << 3,	/* bodies, before a node is chosen */
	SNAP_SITE_HTTPS = 1 << 4,	/* and nothing else is served */
};

struct snap_site {
	int64_t id;
	struct snap_text name, owner, home;
	uint32_t role;			 /* index, or SNAP_NONE */
	uint32_t account, owner_account; /* rows in the scoreboard */
	uint32_t flags;			 /* enum snap_site_flag */
	uint32_t share;			 /* weight in the role's queue, >= 1 */
	uint32_t max_active;		 /* 0: no bound */
	uint32_t queue_ms;		 /* 0: the role's */
	uint64_t max_body;		 /* 0: no bound */
	uint64_t response_buffer;	 /* bytes put away for a slow client */
	struct snap_text disabled_page;	 /* HTML, or none: the built-in */
	struct snap_text error_page;	 /* for 502, 503, 504 */
	struct snap_text hsts;		 /* a whole field line; or none */
	/* Static files; files_key is of all that decides how they are
	 * answered: another key, other answers. */
	uint64_t files_key;
	struct snap_text static_ext, cache_control, charset;
	/* Compression on the way; see compressible.h. */
	uint32_t compress; /* codings */
	uint64_t compress_min;
	struct snap_text compress_types;
};

enum snap_log_format {
	SNAP_LOG_OFF,
	SNAP_LOG_COMMON,
	SNAP_LOG_COMBINED,
	SNAP_LOG_JSON
};

/* Mozilla's names: who can connect. */
enum snap_tls_profile {
	SNAP_TLS_INTERMEDIATE, /* TLS 1.2 and 1.3 */
	SNAP_TLS_MODERN,       /* TLS 1.3 */
	SNAP_TLS_PROFILES
};

/* Settings as the data path wants them: numbers, resolved defaults. */
struct snap_settings {
	uint32_t header_ms;	     /* a whole request head, absolute */
	uint32_t keepalive_ms;	     /* an idle client */
	uint32_t connect_ms;	     /* to a node */
	uint32_t response_ms;	     /* a node's first byte, and between two */
	uint32_t send_ms;	     /* a client that takes nothing */
	uint32_t tunnel_ms;	     /* a silent tunnel */
	uint32_t linger_ms;	     /* reading after the last response */
	uint32_t pool_ms;	     /* an idle connection to a node */
	uint32_t pool_max;	     /* of them, each worker */
	uint32_t body_rate;	     /* bytes a second a body must keep */
	uint32_t body_grace_ms;	     /* before the rate is asked for */
	uint32_t fields_size;	     /* bytes of all fields of a head */
	uint32_t fields_max;	     /* how many */
	uint32_t target_size;	     /* bytes of a request target */
	uint32_t keepalive_requests; /* then the client reconnects; 0: never */
	uint32_t keepalive_http10;   /* bool: honour it for HTTP/1.0 */
	uint32_t retries;	     /* further nodes for one request */
	uint32_t retry_percent;	     /* of requests that may be retries */
	uint32_t eject_after;	     /* failures in a row */
	uint32_t eject_ms;	     /* then doubled each time */
	uint32_t eject_max_ms;
	uint32_t max_clients;		 /* connections a worker holds */
	uint32_t max_client_connections; /* of one address; 0: no bound */
	uint32_t log_format;		 /* enum snap_log_format */
	uint32_t splice;		 /* bool: big bodies by splice */
	uint32_t tls_profile;		 /* enum snap_tls_profile */
	uint32_t https_port;		 /* that redirects name; 0: none */
	uint64_t spool_size;		 /* bytes a worker puts on disk */
	uint32_t gzip_level, brotli_level;
	uint64_t compress_memory; /* bytes, each worker */
	struct snap_text via;	  /* our name in Via */
};

/* Peers by address: ranges, and those of Unix sockets. */
struct snap_peers {
	uint32_t off, n; /* struct cidr */
	uint32_t local;	 /* bool: of Unix sockets */
};

/* A slot of the host table: open addressing, by snapshot_hash(). */
struct snap_host {
	uint64_t hash;
	struct snap_text pattern; /* "a.b", ".b" for "*.b"; len 0: free */
	uint32_t site;
};

/* Where the image begins.  Only snapshot.c and snapshot_plan.c look into the
 * tables by hand. */
struct snap_head {
	char magic[8];
	uint32_t version;
	uint32_t size;
	int64_t revision;
	struct snap_settings settings;
	uint32_t default_site; /* index, or SNAP_NONE */
	uint32_t roles_off, n_roles;
	uint32_t nodes_off, n_nodes;
	uint32_t sites_off, n_sites;
	uint32_t hosts_off, n_hosts; /* slots, a power of two */
	struct snap_peers trusted;   /* see snapshot_trusts() */
	struct snap_peers senders;   /* of a PROXY header */
};

/* One process's handle.  References are that process's, without a lock. */
struct snapshot {
	const struct snap_head *head;
	unsigned refs;
};

/*
 * Maps an image.  The descriptor stays the caller's and may be closed.
 * Refuses a wrong version, size or table bound (ERR_CORRUPT).  One reference
 * is the caller's.
 */
struct snapshot *snapshot_map(int fd, struct err *);
struct snapshot *snapshot_hold(struct snapshot *);
/* Unmaps with the last reference.  NULL is fine. */
void snapshot_release(struct snapshot *);

/*
 * The site for a host name (lower case, no port, no trailing dot), NULL when
 * there is none.  The exact name wins, then the longest wildcard; "*.b" stands
 * for "a.b" and "x.a.b", not for "b".  O(length), whatever the number of
 * sites.  Does not fall back to the default site.
 */
const struct snap_site *snapshot_find(const struct snapshot *, const char *host,
    size_t len);

/* NULL without one. */
const struct snap_site *snapshot_default_site(const struct snapshot *);

/* By index (not SNAP_NONE). */
const struct snap_role *snapshot_role(const struct snapshot *, uint32_t);
const struct snap_node *snapshot_node(const struct snapshot *, uint32_t);
const struct snap_site *snapshot_site(const struct snapshot *, uint32_t);

/* Never NULL; "" for none. */
const char *snapshot_text(const struct snapshot *, struct snap_text);

/* One step of the hash of host names, which runs from the last byte to the
 * first, so that one pass yields the hashes of all suffixes too. */
static inline uint64_t
snapshot_hash(uint64_t hash, char c)
{
	return (hash ^ (unsigned char)c) * 0x100000001b3;
}
#define SNAP_HASH_START 0xcbf29ce484222325

static inline bool
snapshot_has_peers(const struct snap_peers *peers)
{
	return peers->n > 0 || peers->local != 0;
}

bool snapshot_is_peer(const struct snapshot *, const struct snap_peers *,
    const struct addr *);

/* Whether a peer's word on X-Forwarded-* and X-Request-Id is believed. */
static inline bool
snapshot_trusts(const struct snapshot *s, const struct addr *peer)
{
	return snapshot_has_peers(&s->head->trusted) &&
	    snapshot_is_peer(s, &s->head->trusted, peer);
}

#endif
