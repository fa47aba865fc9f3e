/*
 * sites.h: the customers' web sites: host name, aliases, owner, home, and
 * the role that serves them.  A host belongs to at most one site.
 */
#ifndef MUSTER_SITES_H
#define MUSTER_SITES_H

#include "common/base/name.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define SITE_ALIASES_MAX    200
#define SITE_OWNER_LEN	    32 /* a Unix account */
#define SITE_EXTENSIONS_MAX 512
#define SITE_FIELD_MAX	    128
#define SITE_CHARSET_MAX    32
#define SITE_TYPES_MAX	    1024
#define SITE_PATH_MAX	    512

struct site {
	char name[HOST_MAX_LEN + 1]; /* the main host name */
	int64_t id;		     /* stable for the site's life; a key for
				      * counters */
	bool enabled;
	/* Options (site_options). */
	char owner[SITE_OWNER_LEN + 1];
	char home[SITE_PATH_MAX]; /* "": none */
	char role[NAME_MAX_LEN + 1];
	char page[SITE_PATH_MAX];	/* shown while disabled; "": built in */
	char error_page[SITE_PATH_MAX]; /* for 502, 503, 504; "": built in */
	int64_t max_body;		/* bytes; 0: the setting's */
	int64_t share, max_active;
	int64_t use_static; /* 0, 1: files served by the proxy */
	char static_ext[SITE_EXTENSIONS_MAX]; /* "": the proxy's table */
	char cache_control[SITE_FIELD_MAX];   /* of those files; "": none */
	char charset[SITE_CHARSET_MAX];	      /* of their text; "": unsaid */
	int64_t owner_check;	   /* 0, 1: only files of the home's owner */
	int64_t queue_timeout_ms;  /* 0: the role's */
	int64_t response_buffer;   /* bytes; -1: the setting's */
	int64_t request_buffering; /* 0, 1: bodies are collected first */
	int64_t compress;	   /* answers: bits, 1 gzip, 2 br; 0: off */
	char compress_types[SITE_TYPES_MAX]; /* "": the proxy's table */
	int64_t compress_min;		     /* bytes */
	int64_t https_redirect;	   /* 0, 1: plain requests are sent there */
	char hsts[SITE_FIELD_MAX]; /* hsts.h; "": none */
	/* Limits (site_limits); 0: none.  Of all its clients together, and of
	 * each of them: IPv6 by /64. */
	struct rate requests, bandwidth;
	int64_t connections;
	struct rate client_requests, client_bandwidth;
	int64_t client_connections;
	/* Host names, also "*.example.com", sorted, split by one space; NULL:
	 * none. */
	char *aliases;
};

extern const struct option_table site_options;
/* Those of them that are limits. */
extern const struct option_table site_limits;

/* Defaults: enabled, role worker_http, no alias. */
void site_init(struct site *, const char *name);
/* After site_init() and sites_get(); walks do it for their callback. */
void site_fini(struct site *);
/* Whether its static option does nothing, for want of a home. */
bool site_lacks_home(const struct site *);
/* Adds to the list; ERR_USAGE: not a host name, or too many. */
int site_add_alias(struct site *, const char *host, struct err *);

typedef int site_fn(const struct site *, void *arg);

/* By main name or alias as registered.  ERR_NO_TARGET with a "did you
 * mean". */
int sites_get(struct registry *, const char *host, struct site *, struct err *);
/* By name. */
int sites_each(struct registry *, site_fn *, void *arg, struct err *);

/* Each is one change; many inside one registry_begin() cost microseconds a
 * site.  ERR_CONFLICT names the site that has the host already. */
int sites_add(struct registry *, const struct site *, struct err *);
int sites_set(struct registry *, const char *name, const char *option,
    const char *value, struct err *);
int sites_enable(struct registry *, const char *name, bool enabled,
    struct err *);
int sites_add_alias(struct registry *, const char *name, const char *host,
    struct err *);
int sites_remove_alias(struct registry *, const char *name, const char *host,
    struct err *);
int sites_remove(struct registry *, const char *name, struct err *);

#endif
