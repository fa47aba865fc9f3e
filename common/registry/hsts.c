/* hsts.c: see hsts.h. */
#include "common/registry/hsts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"

#define DAY_MS	(24LL * 3600 * 1000)
#define AGE_MAX (3650 * DAY_MS)
/* What hstspreload.org asks for before it takes a site. */
#define PRELOAD_S (365 * DAY_MS / 1000)

struct wish {
	int64_t age_s; /* -1: not said so far */
	bool subdomains, preload;
};

static int
take_age(struct wish *w, const char *item, struct err *e)
{
	int64_t ms;

	if (text_parse_duration("age", item, AGE_MAX, &ms, e) == -1)
		return -1;
	w->age_s = ms / 1000;
	return 0;
}

static int
take_item(struct wish *w, const char *item, struct err *e)
{
	if (w->age_s == -1)
		return take_age(w, item, e);
	if (strcasecmp(item, "includeSubDomains") == 0)
		w->subdomains = true;
	else if (strcasecmp(item, "preload") == 0)
		w->preload = true;
	else
		return err_set(e, ERR_USAGE,
		    "behind the time come 'includeSubDomains' and "
		    "'preload', not '%.40s'",
		    item);
	return 0;
}

int
hsts_value(const char *text, char value[HSTS_VALUE_MAX], struct err *e)
{
	struct wish w = { .age_s = -1 };
	char item[32];

	for (const char *p = text; *p != '\0';) {
		size_t len = strcspn(p, ", ");

		if (len >= sizeof(item))
			return err_set(e, ERR_USAGE,
			    "'%.40s' is neither a time nor a word of it", p);
		memcpy(item, p, len);
		item[len] = '\0';
		if (len > 0 && take_item(&w, item, e) == -1)
			return -1;
		p += len + (p[len] != '\0');
	}
	if (w.age_s == -1)
		return err_set(e, ERR_USAGE,
		    "say for how long, as 365d or 31536000");
	if (w.preload && (!w.subdomains || w.age_s < PRELOAD_S))
		return err_set(e, ERR_USAGE,
		    "preload needs includeSubDomains and at least 365d");
	snprintf(value, HSTS_VALUE_MAX, "max-age=%" PRId64 "%s%s", w.age_s,
	    w.subdomains ? "; includeSubDomains" : "",
	    w.preload ? "; preload" : "");
	return 0;
}
