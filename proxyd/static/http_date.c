/* http_date.c: see http_date.h. */
#include "proxyd/static/http_date.h"

#include <string.h>
#include <time.h>

#include "common/base/io.h"

void
http_date_format(int64_t wall_s, char out[HTTP_DATE_MAX])
{
	time_t t = (time_t)wall_s;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || tm.tm_year > 9999 - 1900)
		memset(&tm, 0, sizeof(tm));
	strftime(out, HTTP_DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

bool
http_date_parse(const char *text, size_t len, int64_t now_s, int64_t *wall_s)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT", /* the one in use */
		"%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
		"%a %b %e %H:%M:%S %Y",	     /* asctime() */
	};
	char copy[64];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	for (size_t i = 0; i < nitems(forms); i++) {
		struct tm tm = { 0 }, given;
		const char *end = strptime(copy, forms[i], &tm);
		time_t t;

		if (end == NULL || *end != '\0' || tm.tm_year < -300)
			continue;
		/* RFC 850: more than 50 years ahead means the past. */
		if (i == 1 && timegm(&tm) > now_s + 50LL * 365 * 86400)
			tm.tm_year -= 100;
		given = tm;
		t = timegm(&tm); /* makes March of February 30 */
		if (tm.tm_mday != given.tm_mday)
			return false;
		*wall_s = t;
		return true;
	}
	return false;
}
