/*
 * roles.h: what nodes do, and how the proxy spreads work over the nodes of a
 * role.  master, worker_http, worker_mysql and storage always exist.
 */
#ifndef MUSTER_ROLES_H
#define MUSTER_ROLES_H

#include "common/base/name.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define ROLE_MASTER	  "master"
#define ROLE_WORKER_HTTP  "worker_http"
#define ROLE_WORKER_MYSQL "worker_mysql"
#define ROLE_STORAGE	  "storage"
/* Not predefined: machines beside the masters that run a proxy, and so need
 * the keys of sites. */
#define ROLE_PROXY "proxy"

#define ROLE_PARAM_MAX	256
#define HEALTH_USER_MAX 81 /* MariaDB's, with a NUL */

enum balance_kind {
	BALANCE_LEAST_CONN,
	BALANCE_ROUND_ROBIN,
	BALANCE_HASH_IP,
	BALANCE_HASH_URI,
	BALANCE_HASH_COOKIE,
	BALANCE_STICKY
};

enum health_kind { HEALTH_NONE, HEALTH_TCP, HEALTH_HTTP, HEALTH_MYSQL };

struct balance {
	enum balance_kind kind;
	char cookie[64]; /* HASH_COOKIE, STICKY */
};

struct health {
	enum health_kind kind;
	char path[ROLE_PARAM_MAX];  /* HTTP: GET this */
	char user[HEALTH_USER_MAX]; /* MySQL: log in as this; or "" */
	unsigned status_min, status_max;
};

enum role_proxy { ROLE_PROXY_OFF, ROLE_PROXY_V1, ROLE_PROXY_V2 };

struct role {
	char name[NAME_MAX_LEN + 1];
	bool predefined;
	int64_t port; /* 0: not balanced by the proxy */
	char balance[ROLE_PARAM_MAX], health[ROLE_PARAM_MAX];
	int64_t interval_ms, check_timeout_ms, rise, fall;
	int64_t maxconn; /* per node; 0: no limit */
	int64_t queue, queue_timeout_ms, slow_start_ms;
	int64_t proxy_protocol; /* enum role_proxy */
};

extern const struct option_table role_options;

/* "least_conn", "hash:cookie=SID", "sticky" (cookie MUSTERID) ... */
int balance_parse(const char *text, struct balance *, struct err *);
/* "none", "tcp", "mysql user=NAME", "http GET /path 200-399" */
int health_parse(const char *text, struct health *, struct err *);

typedef int role_fn(const struct role *, void *arg);

/* ERR_NO_TARGET with a "did you mean". */
int roles_get(struct registry *, const char *name, struct role *, struct err *);
int roles_each(struct registry *, role_fn *, void *arg, struct err *);

/* Each is one change. */
int roles_add(struct registry *, const char *name, struct err *);
int roles_set(struct registry *, const char *name, const char *option,
    const char *value, struct err *);
/* Refused while nodes, sites or tokens have it, and for predefined ones. */
int roles_remove(struct registry *, const char *name, struct err *);

#endif
