/* cert_table.c: see cert_table.h. */
#include "clusterctl/cert_table.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/custody/custody.h"

#define DAY_S	  86400
#define SOON_DAYS 30
#define LATE_DAYS 14
#define NAMES_MAX 256 /* listed */

static const struct column columns[] = {
	{ .title = "SITE", .key = "site" },
	{ .title = "KIND", .key = "kind" },
	{ .title = "DAYS", .key = "days_left", .kind = COLUMN_NUMBER },
	{ .title = "UNTIL", .key = "not_after" },
	{ .title = "ISSUER", .key = "issuer", .where = ON_TTY | ON_JSON },
	{ .title = "STAPLE UNTIL",
	    .key = "staple_until",
	    .where = ON_TTY | ON_JSON },
	{ .title = "KEY HERE",
	    .key = "key_here",
	    .kind = COLUMN_BOOL,
	    .where = ON_TTY | ON_JSON },
	{ .title = "NAMES", .key = "names", .kind = COLUMN_LIST },
	{ .title = "", .key = "key", .where = ON_JSON },
};

struct cert_table {
	struct table *table;
	struct custody custody;
	bool has_custody;
	int64_t now_s;
};

static void put_days(struct table *, int64_t days);
static void put_time(struct table *, int64_t s);
static void put_names(struct table *, const char *names);

struct cert_table *
cert_table_new(const struct context *cx)
{
	struct cert_table *t = xcalloc(1, sizeof(*t));
	struct err ignored;

	t->table = table_new(columns, nitems(columns));
	t->has_custody = state_has(context_state(cx), STATE_TLS) &&
	    custody_open(&t->custody, context_state(cx), &ignored) == 0;
	return t;
}

void
cert_table_put(struct cert_table *t, const struct site_cert *c)
{
	char hex[2 * SITE_CERT_HASH + 1];

	table_put(t->table, c->site);
	table_put(t->table, site_cert_kind_name(c->kind));
	put_days(t->table, cert_days_left(c->not_after_s));
	put_time(t->table, c->not_after_s);
	table_put(t->table, c->issuer);
	if (c->has_staple)
		put_time(t->table, c->staple_until_s);
	else
		table_put(t->table, NULL);
	table_put_bool(t->table,
	    t->has_custody && custody_has(&t->custody, CUSTODY_KEY, c->key));
	put_names(t->table, c->names);
	table_put(t->table,
	    sodium_bin2hex(hex, sizeof(hex), c->key, sizeof(c->key)));
}

void
cert_table_end(struct cert_table *t)
{
	table_end(t->table);
	if (t->has_custody)
		custody_close(&t->custody);
	free(t);
}

int64_t
cert_days_left(int64_t not_after_s)
{
	int64_t left_s = not_after_s - clock_wall_ms() / 1000;

	return left_s >= 0 ? left_s / DAY_S : -((-left_s + DAY_S - 1) / DAY_S);
}

static void
put_days(struct table *t, int64_t days)
{
	table_put_number(t, days);
	if (days < LATE_DAYS)
		table_colour(t, COLOUR_RED);
	else if (days < SOON_DAYS)
		table_colour(t, COLOUR_YELLOW);
}

static void
put_time(struct table *t, int64_t s)
{
	char text[32];

	clock_format_utc(s * 1000, text, sizeof(text));
	table_put(t, text);
}

static void
put_names(struct table *t, const char *names)
{
	char *copy = xstrdup(names), *save = NULL;
	const char *words[NAMES_MAX];
	size_t n = 0;

	for (char *word = strtok_r(copy, " ", &save);
	     word != NULL && n < NAMES_MAX; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	table_put_list(t, words, n);
	free(copy);
}
