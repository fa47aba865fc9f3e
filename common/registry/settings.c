/* settings.c: see settings.h. */
#include "common/registry/settings.h"

#include <string.h>

#include "common/base/addr.h"
#include "common/base/io.h"
#include "common/registry/db.h"

#define SECOND 1000L
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define KIB    1024L
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)

static int check_listen(const char *, struct err *);
static int check_peer(const char *, struct err *);
static int check_path(const char *, struct err *);
static int check_site(const char *, struct err *);

#define ROW(type, unit, ...) \
	OPTION_ROW(OPTION_##type, unit, settings, __VA_ARGS__)
#define TIME(...)	 ROW(DURATION, "time", __VA_ARGS__)
#define BYTES(...)	 ROW(SIZE, "bytes", __VA_ARGS__)
#define COUNT(unit, ...) ROW(COUNT, unit, __VA_ARGS__)

static const struct option settings_rows[] = {
	TIME(node_cert_ms, "cluster.node_cert_ttl", MINUTE, 3650 * DAY, "90d",
	    "life of a node's certificate; it renews at two thirds"),
	TIME(operator_cert_ms, "cluster.operator_cert_ttl", MINUTE, 365 * DAY,
	    "30d", "life of an operator's certificate, within the grants' end"),
	TIME(exec_timeout_ms, "exec.timeout", SECOND, 365 * DAY, "none",
	    "a command runs at most so long, unless --timeout says else",
	    .word = "none"),

	ROW(COUNT, "processes", workers, "proxy.workers", 1, 256, "auto",
	    "worker processes; auto: one a core", .word = "auto"),
	ROW(TEXT, "account", user, "proxy.user", 0, 0, "nobody",
	    "the account the workers run as", .restart = true),
	ROW(LIST, "addresses", http_listen, "proxy.http.listen", 1, 64,
	    "0.0.0.0:80 [::]:80",
	    "where HTTP is taken: IP:PORT, [IPv6]:PORT, unix:/PATH",
	    .check = check_listen, .word = "off"),
	ROW(LIST, "addresses", https_listen, "proxy.https.listen", 1, 64, "off",
	    "where HTTPS is taken, as 0.0.0.0:443 [::]:443",
	    .check = check_listen, .word = "off"),
	ROW(TEXT, "site", default_cert, "proxy.https.default_cert", 0, 0,
	    "none",
	    "whose certificate is for names that none has; none: refused",
	    .check = check_site, .word = "none"),
	ROW(WORD, "", tls_profile, "proxy.tls.profile", 0, 0, "intermediate",
	    "Mozilla's: TLS 1.2 and 1.3, or 1.3 only",
	    .words = "intermediate|modern"),
	ROW(LIST, "addresses", status_listen, "proxy.status.listen", 1, 16,
	    "127.0.0.1:7480", "where /metrics and /status.json are served",
	    .check = check_listen, .word = "off"),
	ROW(LIST, "ranges", trusted, "proxy.trusted", 1, 128, "none",
	    "peers whose X-Forwarded-* and X-Request-Id are believed; unix: "
	    "those of Unix sockets",
	    .check = check_peer, .word = "none"),
	ROW(LIST, "ranges", proxy_protocol, "proxy.proxy_protocol", 1, 128,
	    "none",
	    "peers that begin with a PROXY header, and must; unix: those of "
	    "Unix sockets",
	    .check = check_peer, .word = "none"),
	ROW(TEXT, "file", access_log, "proxy.access_log", 0, 0, "off",
	    "the access log's file; SIGUSR1 reopens it", .check = check_path,
	    .word = "off"),
	ROW(WORD, "", access_log_format, "proxy.access_log_format", 0, 0,
	    "combined", "form of its lines", .words = "common|combined|json"),
	ROW(TEXT, "site", default_site, "proxy.default_site", 0, 0, "none",
	    "the site for hosts that no site has; none: 421",
	    .check = check_site, .word = "none"),

	TIME(header_timeout_ms, "proxy.header_timeout", 100, HOUR, "10s",
	    "a request's head must be here by then, however it drips"),
	TIME(body_timeout_ms, "proxy.body_timeout", 100, HOUR, "30s",
	    "a request's body may pause for so long"),
	ROW(SIZE, "bytes a second", body_min_rate, "proxy.body_min_rate", 0,
	    GIB, "256",
	    "a request's body must come at least so fast on average"),
	TIME(keepalive_ms, "proxy.keepalive", 0, HOUR, "1m",
	    "an idle client connection is kept so long"),
	ROW(BOOL, "", http10_keepalive, "proxy.http10_keepalive", 0, 1, "off",
	    "connections of HTTP/1.0 clients that ask for it are kept, too"),
	COUNT("requests", keepalive_requests, "proxy.keepalive_requests", 1,
	    1000000000, "100000", "requests on one client connection"),
	TIME(connect_timeout_ms, "proxy.connect_timeout", 10, 10 * MINUTE, "2s",
	    "connecting to a node"),
	TIME(response_timeout_ms, "proxy.response_timeout", 10, DAY, "1m",
	    "a node may be silent for so long"),
	TIME(send_timeout_ms, "proxy.send_timeout", 100, HOUR, "30s",
	    "a client may refuse to read for so long"),
	TIME(tunnel_idle_ms, "proxy.tunnel_idle", SECOND, 30 * DAY, "1h",
	    "a WebSocket without a byte either way is kept so long"),
	TIME(drain_ms, "proxy.drain_timeout", 0, DAY, "30s",
	    "a worker that ends lets its connections finish for so long"),

	BYTES(header_size, "proxy.header_size", KIB, 96 * KIB, "64K",
	    "all of a message's fields together"),
	COUNT("fields", header_fields, "proxy.header_fields", 8, 128, "100",
	    "fields of a message"),
	BYTES(target_size, "proxy.target_size", 64, 16 * KIB, "8K",
	    "a request's target"),
	BYTES(body_size, "proxy.body_size", 0, 1024 * GIB, "1G",
	    "a request's body, unless the site says else"),
	BYTES(response_buffer, "proxy.response_buffer", 0, 1024 * GIB, "8M",
	    "of a response that a slow client has not taken yet; 0: none"),
	BYTES(spool_size, "proxy.spool_size", MIB, 1024 * GIB, "1G",
	    "of bodies on disk, in all workers together", .word = "off"),
	COUNT("connections", max_connections, "proxy.max_connections", 16,
	    10000000, "100000", "client connections of one worker"),
	COUNT("connections", max_client_connections,
	    "proxy.max_client_connections", 1, 10000, "off",
	    "of one client address (IPv6: /64); trusted peers aside",
	    .word = "off"),
	COUNT("connections", pool_idle, "proxy.pool_idle", 0, 100000, "512",
	    "idle connections to nodes that a worker keeps"),
	TIME(pool_idle_ms, "proxy.pool_idle_timeout", 0, HOUR, "4s",
	    "kept so long: less than the nodes' own keep-alive"),

	COUNT("level", gzip_level, "proxy.gzip_level", 1, 9, "4",
	    "how hard gzip tries, for sites with compress"),
	COUNT("level", brotli_level, "proxy.brotli_level", 0, 9, "4",
	    "how hard brotli tries"),
	BYTES(compress_memory, "proxy.compress_memory", 0, 64 * GIB, "64M",
	    "what a worker's compressors hold; beyond it, answers go out as "
	    "they are"),

	COUNT("attempts", retries, "proxy.retries", 0, 10, "2",
	    "further nodes tried for one request"),
	COUNT("per cent", retry_budget, "proxy.retry_budget", 0, 100, "10",
	    "retries, of all requests"),
	COUNT("failures", eject_failures, "proxy.eject_failures", 1, 1000, "5",
	    "failures in a row that eject a node"),
	TIME(eject_ms, "proxy.eject_time", 100, HOUR, "5s",
	    "for how long; doubles each time"),
	TIME(eject_max_ms, "proxy.eject_max", 100, DAY, "5m", "and at most"),
};

const struct option_table settings_table = { "setting", settings_rows,
	nitems(settings_rows) };

int
settings_load(struct registry *r, struct settings *s, struct err *e)
{
	static const char sql[] = "SELECT key, value FROM settings";
	struct settings out;
	struct rows q;
	int rv;

	option_defaults(&settings_table, &out);
	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		const char *key = row_text_borrow(&q);

		/* One that this version does not know is left alone. */
		if (option_find(&settings_table, key, e) == NULL)
			continue;
		if (option_set(&settings_table, &out, key, row_text_borrow(&q),
			e) == -1) {
			e->code = ERR_CORRUPT;
			rows_close(&q);
			return err_wrap(e, "registry");
		}
	}
	if (rv == 0)
		*s = out;
	return rv;
}

int
settings_set(struct registry *r, const char *key, const char *value,
    struct err *e)
{
	static const char sql[] =
	    "INSERT INTO settings (key, value) VALUES (?1, ?2) "
	    "ON CONFLICT (key) DO UPDATE SET value = ?2 WHERE value <> ?2";
	const struct option *o = option_find(&settings_table, key, e);
	char text[OPTION_TEXT_MAX];
	struct settings s;
	int rv;

	if (o == NULL || option_set(&settings_table, &s, key, value, e) == -1)
		return -1;
	option_text(o, &s, text);
	if (registry_begin(r, e, "set %s %.150s", key, text) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(key), TEXT(text));
	return registry_end(r, rv, e);
}

int
settings_reset(struct registry *r, const char *key, struct err *e)
{
	static const char sql[] = "DELETE FROM settings WHERE key = ?";
	int rv;

	if (option_find(&settings_table, key, e) == NULL ||
	    registry_begin(r, e, "reset %s", key) == -1)
		return -1;
	rv = db_run(r, e, sql, TEXT(key));
	return registry_end(r, rv, e);
}

/* ---- rules of their own ----------------------------------------------- */

static int
check_listen(const char *text, struct err *e)
{
	struct addr a;

	if (addr_unix_path(text) != NULL)
		return addr_unix_check(text, e);
	if (addr_parse(text, 0, &a, e) == -1)
		return -1;
	if (addr_port(&a) == 0)
		return err_set(e, ERR_USAGE, "'%.60s' has no port", text);
	return 0;
}

static int
check_peer(const char *text, struct err *e)
{
	struct cidr c;

	if (strcmp(text, SETTING_PEER_UNIX) == 0)
		return 0;
	return cidr_parse(text, &c, e);
}

static int
check_path(const char *text, struct err *e)
{
	if (*text == '/')
		return 0;
	return err_set(e, ERR_USAGE, "'%.60s' is not an absolute path", text);
}

static int
check_site(const char *text, struct err *e)
{
	return name_check_host(text, false, e);
}
