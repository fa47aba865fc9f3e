/*
 * why.h: the reasons for every answer that is not simply a node's: refusals,
 * retries, 502s and 503s.  One table: the word stands in logs, metrics and
 * the X-Muster-Why field.
 */
#ifndef MUSTER_WHY_H
#define MUSTER_WHY_H

/* Limits of a site, and of each client of it: http/limit.h. */
#define WHY_LIMITS(X)                                          \
	X(LIMIT_REQUESTS, 429, "limit_requests")               \
	X(LIMIT_CONNECTIONS, 429, "limit_connections")         \
	X(LIMIT_CLIENT_REQUESTS, 429, "limit_client_requests") \
	X(LIMIT_CLIENT_CONNECTIONS, 429, "limit_client_connections")

/* X(name, status, word): the status we answer with; 0 where none is sent. */
#define WHY_TABLE(X)                                 \
	X(NONE, 0, "-")                              \
	/* The client's request. */                  \
	X(BAD_REQUEST, 400, "bad_request")           \
	X(BAD_LINE, 400, "bad_request_line")         \
	X(BAD_TARGET, 400, "bad_target")             \
	X(BAD_VERSION, 400, "bad_version")           \
	X(BAD_FIELD, 400, "bad_field")               \
	X(BAD_HOST, 400, "bad_host")                 \
	X(BAD_LENGTH, 400, "bad_content_length")     \
	X(BAD_CODING, 400, "bad_transfer_encoding")  \
	X(BAD_CHUNK, 400, "bad_chunk")               \
	X(BAD_TRAILER, 400, "bad_trailer")           \
	X(BAD_UPGRADE, 400, "bad_upgrade")           \
	X(METHOD_REFUSED, 405, "method_refused")     \
	X(TOO_SLOW, 408, "too_slow")                 \
	X(BODY_TOO_LARGE, 413, "body_too_large")     \
	X(TARGET_TOO_LONG, 414, "target_too_long")   \
	X(BAD_EXPECT, 417, "bad_expect")             \
	X(MISDIRECTED, 421, "misdirected")           \
	X(FIELDS_TOO_LARGE, 431, "fields_too_large") \
	X(METHOD_UNKNOWN, 501, "method_unknown")     \
	X(CODING_UNKNOWN, 501, "coding_unknown")     \
	X(HTTP_VERSION, 505, "http_version")         \
	X(HTTPS_ONLY, 308, "https_only")             \
	X(LOOP, 508, "loop")                         \
	X(PROXY_HEADER, 0, "bad_proxy_header")       \
	X(CLIENT_GONE, 0, "client_gone")             \
	X(CLIENT_STALLED, 0, "client_stalled")       \
	X(TUNNEL_IDLE, 0, "tunnel_idle")             \
	/* The site. */                              \
	X(NO_SITE, 421, "no_site")                   \
	X(SITE_DISABLED, 503, "site_disabled")       \
	X(SITE_BUSY, 503, "site_busy")               \
	WHY_LIMITS(X)                                \
	X(HIDDEN_FILE, 403, "hidden_file")           \
	X(FILE_CUT, 0, "file_cut")                   \
	/* The role and its nodes. */                \
	X(NO_NODE, 503, "no_node")                   \
	X(QUEUE_FULL, 503, "queue_full")             \
	X(QUEUE_TIMEOUT, 503, "queue_timeout")       \
	X(CONNECT_REFUSED, 502, "connect_refused")   \
	X(CONNECT_DENIED, 502, "connect_denied")     \
	X(CONNECT_FAILED, 502, "connect_failed")     \
	X(CONNECT_TIMEOUT, 504, "connect_timeout")   \
	X(NODE_RESET, 502, "node_reset")             \
	X(NODE_CLOSED, 502, "node_closed")           \
	X(NODE_TIMEOUT, 504, "node_timeout")         \
	X(NODE_GARBAGE, 502, "node_garbage")         \
	X(NODE_CUT, 502, "node_cut_body")            \
	X(NODE_UPGRADE, 502, "node_bad_upgrade")     \
	X(RETRY_BUDGET, 502, "retry_budget")         \
	/* Ourselves. */                             \
	X(NO_MEMORY, 503, "no_memory")               \
	X(SPOOL_LOST, 503, "spool_lost")             \
	X(NO_DESCRIPTORS, 503, "no_descriptors")     \
	X(COMPRESS, 0, "compress_failed")            \
	X(DRAINING, 503, "draining")                 \
	X(LOCAL_ANSWER, 200, "local_answer")         \
	/* States of a node. */                      \
	X(ADMIN_DRAIN, 0, "drain")                   \
	X(ADMIN_MAINTENANCE, 0, "maintenance")       \
	X(CHECK_OK, 0, "check_ok")                   \
	X(CHECK_DOWN, 0, "check_down")               \
	X(CHECK_CONNECT, 0, "check_cannot_connect")  \
	X(CHECK_DENIED, 0, "check_denied")           \
	X(CHECK_TIMEOUT, 0, "check_timeout")         \
	X(CHECK_STATUS, 0, "check_status")           \
	X(CHECK_ERROR, 0, "check_error")             \
	X(CHECK_GARBAGE, 0, "check_garbage")         \
	X(EJECTED, 0, "ejected")                     \
	X(LAST_NODE, 0, "last_node_kept")            \
	X(NODE_FULL, 0, "node_full")                 \
	X(SLOW_START, 0, "slow_start")

enum why {
#define X(name, status, word) WHY_##name,
	WHY_TABLE(X)
#undef X
	    WHY_N
};

/* "bad_chunk" */
const char *why_word(enum why);
/* The status that answers it. */
int why_status(enum why);

#endif
