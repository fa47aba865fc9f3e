/*
 * settings.h: the settings of the cluster and of its proxies: typed fields
 * here, one table row each in settings.c.
 */
#ifndef MUSTER_SETTINGS_H
#define MUSTER_SETTINGS_H

#include "common/base/name.h"
#include "common/registry/option.h"
#include "common/registry/registry.h"

#define SETTING_LIST_MAX 2048
#define SETTING_PATH_MAX 512

#define SETTING_PEER_UNIX "unix" /* in a list of ranges: any local peer */

enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };
enum access_log_format { LOG_COMMON, LOG_COMBINED, LOG_JSON };

/* Times in ms, sizes in bytes; text "" stands for off, none. */
struct settings {
	/* cluster.* */
	int64_t node_cert_ms, operator_cert_ms;
	int64_t exec_timeout_ms; /* 0: none */
	/* proxy.* */
	int64_t workers; /* 0: one a core */
	char http_listen[SETTING_LIST_MAX];
	char https_listen[SETTING_LIST_MAX];
	char default_cert[HOST_MAX_LEN + 1];
	int64_t tls_profile; /* enum tls_profile */
	char status_listen[SETTING_LIST_MAX];
	char trusted[SETTING_LIST_MAX], proxy_protocol[SETTING_LIST_MAX];
	char access_log[SETTING_PATH_MAX];
	int64_t access_log_format; /* enum access_log_format */
	char default_site[HOST_MAX_LEN + 1];
	char user[33]; /* the workers' account */
	int64_t header_timeout_ms, body_timeout_ms, body_min_rate;
	int64_t keepalive_ms, keepalive_requests, http10_keepalive;
	int64_t connect_timeout_ms, response_timeout_ms, send_timeout_ms;
	int64_t tunnel_idle_ms, drain_ms;
	int64_t header_size, header_fields, target_size;
	int64_t body_size, response_buffer;
	int64_t spool_size; /* 0: none */
	int64_t max_connections, pool_idle, pool_idle_ms;
	int64_t max_client_connections; /* 0: no limit */
	int64_t gzip_level, brotli_level;
	int64_t compress_memory;       /* of one worker */
	int64_t retries, retry_budget; /* budget: per cent of requests */
	int64_t eject_failures, eject_ms, eject_max_ms;
};

extern const struct option_table settings_table;

/* All of them, defaults where nothing is set. */
int settings_load(struct registry *, struct settings *, struct err *);

/* One change.  ERR_USAGE: unknown key (did you mean), or the broken rule. */
int settings_set(struct registry *, const char *key, const char *value,
    struct err *);
int settings_reset(struct registry *, const char *key, struct err *);

#endif
