/* sites.c: see sites.h. */
#include "common/registry/sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/registry/db.h"
#include "common/registry/hsts.h"
#include "common/registry/roles.h"

#define ROW(type, unit, ...) OPTION_ROW(OPTION_##type, unit, site, __VA_ARGS__)

#define SITE_SELECT                                                     \
	"SELECT s.id, s.name, s.enabled, s.options, "                   \
	"(SELECT group_concat(host, ' ') FROM (SELECT host FROM hosts " \
	"WHERE site_id = s.id AND alias = 1 ORDER BY host)) FROM sites s"

static int check_owner(const char *, struct err *);
static int check_path(const char *, struct err *);
static int check_extension(const char *, struct err *);
static int check_cache_control(const char *, struct err *);
static int check_charset(const char *, struct err *);
static int check_media_type(const char *, struct err *);
static int check_hsts(const char *, struct err *);
static int row_site(struct rows *, struct site *, struct err *);
static int check_role(struct registry *, const struct site *, struct err *);
static int insert(struct registry *, const struct site *, struct err *);
static int insert_aliases(struct registry *, const struct site *, struct err *);
static int insert_host(struct registry *, const char *site, const char *host,
    bool alias, struct err *);
static int set_value(struct registry *, struct site *, const char *option,
    const char *value, struct err *);
static int get_main(struct registry *, const char *name, struct site *,
    struct err *);
static size_t count_aliases(const struct site *);

#define LIMIT_ROWS                                                            \
	ROW(RATE, "requests", requests, "requests", 1, 1000000, "off",        \
	    "requests of all clients together; beyond it: 429",               \
	    .word = "off"),                                                   \
	    ROW(COUNT, "connections", connections, "connections", 1, 1000000, \
		"off", "connections in use at once, tunnels too",             \
		.word = "off"),                                               \
	    ROW(BANDWIDTH, "bytes", bandwidth, "bandwidth", 1024, 1LL << 40,  \
		"off", "responses to all clients together", .word = "off"),   \
	    ROW(RATE, "requests", client_requests, "client_requests", 1,      \
		1000000, "off",                                               \
		"requests of each client address (IPv6: each /64)",           \
		.word = "off"),                                               \
	    ROW(COUNT, "connections", client_connections,                     \
		"client_connections", 1, 10000, "off",                        \
		"connections that each client address uses at once",          \
		.word = "off"),                                               \
	    ROW(BANDWIDTH, "bytes", client_bandwidth, "client_bandwidth",     \
		1024, 1LL << 40, "off", "responses to each client address",   \
		.word = "off")

static const struct option limit_rows[] = { LIMIT_ROWS };

static const struct option site_rows[] = {
	ROW(TEXT, "account", owner, "owner", 0, 0, "",
	    "the customer's account; traffic is counted by it",
	    .check = check_owner),
	ROW(TEXT, "directory", home, "home", 0, 0, "none",
	    "where its files are, for static files", .check = check_path,
	    .word = "none"),
	ROW(TEXT, "role", role, "role", 0, 0, ROLE_WORKER_HTTP,
	    "the nodes that serve it", .check = name_check_role),
	ROW(TEXT, "file", page, "page", 0, 0, "none",
	    "the page that is shown while it is disabled", .check = check_path,
	    .word = "none"),
	ROW(TEXT, "file", error_page, "error_page", 0, 0, "none",
	    "the page that is shown when no node answers (502, 503, 504)",
	    .check = check_path, .word = "none"),
	ROW(SIZE, "bytes", max_body, "max_body", 1, 1LL << 40, "default",
	    "a request's body; default: proxy.body_size", .word = "default"),
	ROW(COUNT, "", share, "share", 1, 1000, "1",
	    "its weight in a full role's queue"),
	ROW(COUNT, "requests", max_active, "max_active", 1, 1000000, "none",
	    "at once at all nodes together", .word = "none"),
	ROW(BOOL, "", use_static, "static", 0, 1, "off",
	    "plain files come from its home, without a node"),
	ROW(LIST, "extensions", static_ext, "static_ext", 0, 64, "default",
	    "the files that are plain; default: css, js, images, fonts ...",
	    .check = check_extension, .word = "default"),
	ROW(TEXT, "", cache_control, "cache_control", 0, 0, "none",
	    "the Cache-Control field of those files",
	    .check = check_cache_control, .word = "none"),
	ROW(TEXT, "", charset, "charset", 0, 0, "none",
	    "the charset of those that are text", .check = check_charset,
	    .word = "none"),
	ROW(BOOL, "", owner_check, "owner_check", 0, 1, "off",
	    "only files that belong to the owner of the home"),
	ROW(WORD, "codings", compress, "compress", 0, 0, "off",
	    "answers are compressed for clients that take it",
	    .words = "off|gzip|br|gzip,br"),
	ROW(LIST, "types", compress_types, "compress_types", 1, 64, "default",
	    "media types that are, such as text/*; default: text, scripts ...",
	    .check = check_media_type, .word = "default"),
	ROW(SIZE, "bytes", compress_min, "compress_min", 1, 1LL << 30, "1K",
	    "answers known to be smaller are not"),
	ROW(DURATION, "time", queue_timeout_ms, "queue_timeout", 1, 3600000,
	    "default", "a request waits at most so long; default: the role's",
	    .word = "default"),
	ROW(SIZE, "bytes", response_buffer, "response_buffer", 0, 1LL << 40,
	    "default",
	    "of a response that a slow client has not taken yet; default: "
	    "proxy.response_buffer",
	    .word = "default", .word_value = -1),
	ROW(BOOL, "", request_buffering, "request_buffering", 0, 1, "on",
	    "a body is collected before a node is chosen"),
	ROW(BOOL, "", https_redirect, "https_redirect", 0, 1, "off",
	    "plain requests are sent on to https"),
	ROW(TEXT, "", hsts, "hsts", 0, 0, "off",
	    "browsers are told to use https only for so long: "
	    "365d[,includeSubDomains[,preload]]",
	    .check = check_hsts, .word = "off"),
	LIMIT_ROWS,
};

const struct option_table site_options = { "site option", site_rows,
	nitems(site_rows) };
const struct option_table site_limits = { "limit", limit_rows,
	nitems(limit_rows) };

void
site_init(struct site *s, const char *name)
{
	*s = (struct site){ .enabled = true };
	option_defaults(&site_options, s);
	snprintf(s->name, sizeof(s->name), "%s", name);
}

void
site_fini(struct site *s)
{
	free(s->aliases);
	s->aliases = NULL;
}

bool
site_lacks_home(const struct site *s)
{
	return s->use_static != 0 && *s->home == '\0';
}

int
site_add_alias(struct site *s, const char *host, struct err *e)
{
	size_t had = s->aliases != NULL ? strlen(s->aliases) : 0;
	char *list;

	if (name_check_host(host, true, e) == -1)
		return -1;
	if (count_aliases(s) >= SITE_ALIASES_MAX)
		return err_set(e, ERR_USAGE,
		    "site %.64s has %d aliases already, the most there can be",
		    s->name, SITE_ALIASES_MAX);
	if ((list = realloc(s->aliases, had + strlen(host) + 2)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	snprintf(list + had, strlen(host) + 2, "%s%s", had > 0 ? " " : "",
	    host);
	s->aliases = list;
	return 0;
}

int
sites_get(struct registry *r, const char *host, struct site *s, struct err *e)
{
	static const char sql[] = SITE_SELECT
	    " WHERE s.id = (SELECT site_id FROM hosts WHERE host = ?)";
	static const char names[] = "SELECT name FROM sites ORDER BY name";
	struct site out;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, TEXT(host)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) == 1)
		rv = row_site(&q, &out, e);
	else if (rv == 0)
		rv = db_no_such(r, e, "site", host, names);
	rows_close(&q);
	if (rv == 0)
		*s = out;
	return rv;
}

int
sites_each(struct registry *r, site_fn *fn, void *arg, struct err *e)
{
	static const char sql[] = SITE_SELECT " ORDER BY s.name";
	struct site s;
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		if ((rv = row_site(&q, &s, e)) != 0)
			break;
		rv = fn(&s, arg);
		site_fini(&s);
		if (rv != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

int
sites_add(struct registry *r, const struct site *s, struct err *e)
{
	int rv;

	if (name_check_host(s->name, false, e) == -1 ||
	    registry_begin(r, e, "add site %s", s->name) == -1)
		return -1;
	rv = check_role(r, s, e);
	if (rv == 0)
		rv = insert(r, s, e);
	if (rv == 0)
		rv = insert_host(r, s->name, s->name, false, e);
	if (rv == 0)
		rv = insert_aliases(r, s, e);
	return registry_end(r, rv, e);
}

int
sites_set(struct registry *r, const char *name, const char *option,
    const char *value, struct err *e)
{
	struct site s;
	int rv;

	if (registry_begin(r, e, "set site %.64s %s %.80s", name, option,
		value) == -1)
		return -1;
	if ((rv = get_main(r, name, &s, e)) == 0) {
		rv = set_value(r, &s, option, value, e);
		site_fini(&s);
	}
	return registry_end(r, rv, e);
}

int
sites_enable(struct registry *r, const char *name, bool enabled, struct err *e)
{
	static const char sql[] =
	    "UPDATE sites SET enabled = ?2 WHERE name = ?1 AND enabled <> ?2";
	struct site s;
	int rv;

	if (registry_begin(r, e, "%s site %s", enabled ? "enable" : "disable",
		name) == -1)
		return -1;
	if ((rv = get_main(r, name, &s, e)) == 0) {
		rv = db_run(r, e, sql, TEXT(name), INT(enabled));
		site_fini(&s);
	}
	return registry_end(r, rv, e);
}

int
sites_add_alias(struct registry *r, const char *name, const char *host,
    struct err *e)
{
	struct site s;
	int rv;

	if (registry_begin(r, e, "add alias %.80s to site %.80s", host, name) ==
	    -1)
		return -1;
	if ((rv = get_main(r, name, &s, e)) == 0) {
		rv = site_add_alias(&s, host, e);
		if (rv == 0)
			rv = insert_host(r, name, host, true, e);
		site_fini(&s);
	}
	return registry_end(r, rv, e);
}

int
sites_remove_alias(struct registry *r, const char *name, const char *host,
    struct err *e)
{
	static const char sql[] =
	    "DELETE FROM hosts WHERE host = ? AND alias = 1 AND site_id = "
	    "(SELECT id FROM sites WHERE name = ?)";
	struct site s;
	int rv;

	if (registry_begin(r, e, "remove alias %.80s from site %.80s", host,
		name) == -1)
		return -1;
	if ((rv = get_main(r, name, &s, e)) == 0) {
		rv = db_run(r, e, sql, TEXT(host), TEXT(name));
		if (rv == 0 && db_n_changed(r) == 0)
			rv = err_set(e, ERR_NO_TARGET,
			    "site %.64s has no alias %.64s", name, host);
		site_fini(&s);
	}
	return registry_end(r, rv, e);
}

int
sites_remove(struct registry *r, const char *name, struct err *e)
{
	static const char sql[] = "DELETE FROM sites WHERE name = ?";
	struct site s;
	int rv;

	if (registry_begin(r, e, "remove site %s", name) == -1)
		return -1;
	if ((rv = get_main(r, name, &s, e)) == 0) {
		rv = db_run(r, e, sql, TEXT(name));
		site_fini(&s);
	}
	return registry_end(r, rv, e);
}

/* A change names the site itself: an alias may move to another. */
static int
get_main(struct registry *r, const char *name, struct site *s, struct err *e)
{
	struct site out;

	if (sites_get(r, name, &out, e) == -1)
		return -1;
	if (strcmp(out.name, name) == 0) {
		*s = out;
		return 0;
	}
	err_set(e, ERR_NO_TARGET, "%.64s is an alias of site %.64s; name that",
	    name, out.name);
	site_fini(&out);
	return -1;
}

static int
set_value(struct registry *r, struct site *s, const char *option,
    const char *value, struct err *e)
{
	static const char sql[] =
	    "UPDATE sites SET options = ?2 WHERE name = ?1 AND options <> ?2";
	static const char set_role[] =
	    "UPDATE sites SET role = ?2 WHERE name = ?1 AND role <> ?2";

	if (option_set(&site_options, s, option, value, e) == -1 ||
	    check_role(r, s, e) == -1 ||
	    db_run(r, e, set_role, TEXT(s->name), TEXT(s->role)) == -1)
		return -1;
	return db_save_options(r, e, &site_options, s, sql, TEXT(s->name));
}

static int
row_site(struct rows *q, struct site *s, struct err *e)
{
	struct site out = { .aliases = NULL };
	const char *aliases;

	out.id = row_int(q);
	row_text(q, out.name, sizeof(out.name));
	out.enabled = row_int(q) != 0;
	if (row_options(q, &site_options, &out, e) == -1)
		return err_wrap(e, "site %.64s", out.name);
	aliases = row_text_borrow(q);
	if (*aliases != '\0' && (out.aliases = strdup(aliases)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	*s = out;
	return 0;
}

static int
insert(struct registry *r, const struct site *s, struct err *e)
{
	static const char sql[] =
	    "INSERT INTO sites (name, enabled, role, options) "
	    "VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
	char *options = db_options_text(&site_options, s, e);
	int rv;

	if (options == NULL)
		return -1;
	rv = db_run(r, e, sql, TEXT(s->name), INT(s->enabled), TEXT(s->role),
	    TEXT(options));
	if (rv == 0 && db_n_changed(r) == 0)
		rv = err_set(e, ERR_CONFLICT, "site %.64s exists already",
		    s->name);
	free(options);
	return rv;
}

static int
insert_aliases(struct registry *r, const struct site *s, struct err *e)
{
	char host[HOST_MAX_LEN + 1];

	if (count_aliases(s) > SITE_ALIASES_MAX)
		return err_set(e, ERR_USAGE, "site %.64s: more than %d aliases",
		    s->name, SITE_ALIASES_MAX);
	for (const char *p = s->aliases; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");

		snprintf(host, sizeof(host), "%.*s", (int)n, p);
		if (n > HOST_MAX_LEN || name_check_host(host, true, e) == -1 ||
		    insert_host(r, s->name, host, true, e) == -1)
			return -1;
		p += n + (p[n] == ' ');
	}
	return 0;
}

static int
insert_host(struct registry *r, const char *site, const char *host, bool alias,
    struct err *e)
{
	static const char sql[] =
	    "INSERT INTO hosts (host, site_id, alias) "
	    "SELECT ?, id, ? FROM sites WHERE name = ? ON CONFLICT DO NOTHING";
	struct site other;

	if (db_run(r, e, sql, TEXT(host), INT(alias), TEXT(site)) == -1)
		return -1;
	if (db_n_changed(r) > 0)
		return 0;
	if (sites_get(r, host, &other, e) == -1)
		return -1;
	err_set(e, ERR_CONFLICT, "host %.80s belongs to site %.80s already",
	    host, other.name);
	site_fini(&other);
	return -1;
}

static int
check_role(struct registry *r, const struct site *s, struct err *e)
{
	static const char sql[] = "SELECT 1 FROM roles WHERE name = ?";
	struct role role;
	int64_t found;
	int rv = db_int(r, e, &found, sql, TEXT(s->role));

	/* The cheap question first; the full look-up words the answer. */
	return rv == 0 ? roles_get(r, s->role, &role, e) : rv == 1 ? 0 : -1;
}

static size_t
count_aliases(const struct site *s)
{
	size_t n = 0;

	for (const char *p = s->aliases; p != NULL && *p != '\0'; p++)
		n += *p == ' ';
	return s->aliases != NULL && *s->aliases != '\0' ? n + 1 : 0;
}

static int
check_owner(const char *text, struct err *e)
{
	static const char rule[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "._-";

	if (text[strspn(text, rule)] == '\0' && *text != '-' && *text != '.')
		return 0;
	return err_set(e, ERR_USAGE, "'%.40s' is not an account's name", text);
}

static int
check_path(const char *text, struct err *e)
{
	if (*text == '/')
		return 0;
	return err_set(e, ERR_USAGE, "'%.60s' is not an absolute path", text);
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static int
check_extension(const char *text, struct err *e)
{
	if (*text != '\0' && text[strspn(text, LOWER DIGITS)] == '\0' &&
	    strlen(text) <= 16)
		return 0;
	return err_set(e, ERR_USAGE,
	    "'%.20s' is no extension: lower case letters and digits, without "
	    "the dot",
	    text);
}

/* It becomes a field as it stands. */
static int
check_cache_control(const char *text, struct err *e)
{
	if (*text != '\0' && text[strspn(text, LOWER DIGITS "-=, \"")] == '\0')
		return 0;
	return err_set(e, ERR_USAGE,
	    "'%.60s' is no Cache-Control (such as: public, max-age=3600)",
	    text);
}

static int
check_hsts(const char *text, struct err *e)
{
	char value[HSTS_VALUE_MAX];

	return hsts_value(text, value, e);
}

static int
check_charset(const char *text, struct err *e)
{
	static const char bytes[] =
	    LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-_";

	if (*text != '\0' && text[strspn(text, bytes)] == '\0')
		return 0;
	return err_set(e, ERR_USAGE,
	    "'%.31s' is no charset (such as: utf-8, windows-1251)", text);
}

/* One star may stand for what is behind the slash. */
static int
check_media_type(const char *text, struct err *e)
{
	static const char bytes[] = LOWER DIGITS ".+-_";
	size_t n = strspn(text, bytes);
	const char *sub = text + n + 1;

	if (n > 0 && text[n] == '/' &&
	    (strcmp(sub, "*") == 0 ||
		(*sub != '\0' && sub[strspn(sub, bytes)] == '\0')))
		return 0;
	return err_set(e, ERR_USAGE,
	    "'%.60s' is no media type (such as: text/html, text/*)", text);
}
