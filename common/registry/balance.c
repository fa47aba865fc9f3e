/* balance.c: how a role's work is spread and its nodes are checked, from
 * text; see roles.h. */
#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/text.h"
#include "common/registry/roles.h"

#define STICKY_COOKIE "MUSTERID"

static const struct {
	const char *text;
	enum balance_kind kind;
	bool takes_cookie, needs_cookie; /* behind '=' */
} balances[] = {
	{ "least_conn", BALANCE_LEAST_CONN, false, false },
	{ "round_robin", BALANCE_ROUND_ROBIN, false, false },
	{ "hash:ip", BALANCE_HASH_IP, false, false },
	{ "hash:uri", BALANCE_HASH_URI, false, false },
	{ "hash:cookie", BALANCE_HASH_COOKIE, true, true },
	{ "sticky", BALANCE_STICKY, true, false },
};

static bool cookie_valid(const char *name);
static int parse_http(const char *text, struct health *, struct err *);
static int parse_mysql(const char *text, struct health *, struct err *);
static bool path_valid(const char *path, size_t len);

int
balance_parse(const char *text, struct balance *b, struct err *e)
{
	const char *eq = strchr(text, '=');
	size_t len = eq != NULL ? (size_t)(eq - text) : strlen(text);

	for (size_t i = 0; i < nitems(balances); i++) {
		struct balance out = { .kind = balances[i].kind };

		if (strlen(balances[i].text) != len ||
		    memcmp(balances[i].text, text, len) != 0)
			continue;
		if (eq == NULL ? balances[i].needs_cookie :
				 !balances[i].takes_cookie)
			break;
		if (eq != NULL && !cookie_valid(eq + 1))
			break;
		if (balances[i].takes_cookie)
			snprintf(out.cookie, sizeof(out.cookie), "%s",
			    eq != NULL ? eq + 1 : STICKY_COOKIE);
		*b = out;
		return 0;
	}
	return err_set(e, ERR_USAGE,
	    "'%.60s' is not least_conn, round_robin, hash:ip, hash:uri, "
	    "hash:cookie=NAME or sticky[=COOKIE]",
	    text);
}

int
health_parse(const char *text, struct health *h, struct err *e)
{
	static const struct {
		const char *text;
		enum health_kind kind;
	} plain[] = {
		{ "none", HEALTH_NONE },
		{ "tcp", HEALTH_TCP },
		{ "mysql", HEALTH_MYSQL },
	};

	for (size_t i = 0; i < nitems(plain); i++) {
		if (strcmp(text, plain[i].text) == 0) {
			*h = (struct health){ .kind = plain[i].kind };
			return 0;
		}
	}
	if (strncmp(text, "http ", 5) == 0)
		return parse_http(text, h, e);
	if (strncmp(text, "mysql ", 6) == 0)
		return parse_mysql(text, h, e);
	return err_set(e, ERR_USAGE,
	    "'%.60s' is not none, tcp, 'mysql [user=NAME]' or "
	    "'http GET /PATH [200-399]'",
	    text);
}

/* "http GET /path" and optionally "200" or "200-399". */
static int
parse_http(const char *text, struct health *h, struct err *e)
{
	struct health out = { .kind = HEALTH_HTTP,
		.status_min = 200,
		.status_max = 399 };
	char low[8] = "", high[8] = "", junk;
	uint64_t min, max;
	const char *path;
	size_t len;
	int n;

	if (strncmp(text, "http GET /", 10) != 0)
		goto bad;
	path = text + 9;
	len = strcspn(path, " ");
	if (len >= sizeof(out.path) || !path_valid(path, len))
		goto bad;
	memcpy(out.path, path, len);
	if (path[len] != '\0') {
		n = sscanf(path + len, " %7[0-9]-%7[0-9]%c", low, high, &junk);
		if (n == 1 && strchr(path + len, '-') == NULL)
			memcpy(high, low, sizeof(high));
		else if (n != 2)
			goto bad;
		if (text_parse_u64("status", low, 100, 599, &min, e) == -1 ||
		    text_parse_u64("status", high, min, 599, &max, e) == -1)
			goto bad;
		out.status_min = (unsigned)min;
		out.status_max = (unsigned)max;
	}
	*h = out;
	return 0;
bad:
	return err_set(e, ERR_USAGE,
	    "'%.60s' is not 'http GET /PATH [STATUS[-STATUS]]'", text);
}

/* "mysql user=NAME" */
static int
parse_mysql(const char *text, struct health *h, struct err *e)
{
	struct health out = { .kind = HEALTH_MYSQL };
	size_t len = strlen(text), skip = strlen("mysql user=");

	if (strncmp(text, "mysql user=", skip) != 0 || len == skip ||
	    len - skip >= sizeof(out.user) ||
	    !path_valid(text + skip, len - skip))
		return err_set(e, ERR_USAGE,
		    "'%.60s' is not 'mysql user=NAME', with an account that "
		    "needs no password",
		    text);
	memcpy(out.user, text + skip, len - skip + 1);
	*h = out;
	return 0;
}

/* A token of RFC 6265, section 4.1.1, short enough to be sent each time. */
static bool
cookie_valid(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= sizeof(((struct balance *)0)->cookie))
		return false;
	for (; *name != '\0'; name++)
		if (*name <= 0x20 || *name >= 0x7f ||
		    strchr("()<>@,;:\\\"/[]?={}", *name) != NULL)
			return false;
	return true;
}

/* What may stand in a request line as it is. */
static bool
path_valid(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (path[i] <= 0x20 || path[i] >= 0x7f || path[i] == '#')
			return false;
	return true;
}
