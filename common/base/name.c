/* name.c: see name.h. */
#include "common/base/name.h"

#include <stdint.h>
#include <string.h>

static bool is_alnum(char);
static bool label_valid(const char *label, size_t len);
static size_t edit_distance(const char *a, const char *b);

bool
name_valid(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(name[i]) && strchr("._-", name[i]) == NULL)
			return false;
	return is_alnum(name[0]) && is_alnum(name[len - 1]);
}

int
name_check(const char *what, const char *name, struct err *e)
{
	if (name_valid(name))
		return 0;
	return err_set(e, ERR_USAGE,
	    "%s '%.64s' is not valid: lower-case letters, digits, '.', '_' "
	    "and '-', a letter or digit first and last, at most %d bytes",
	    what, name, NAME_MAX_LEN);
}

int
name_check_role(const char *name, struct err *e)
{
	if (name_valid(name) && strchr(name, '.') == NULL)
		return 0;
	return err_set(e, ERR_USAGE,
	    "role name '%.64s' is not valid: lower-case letters, digits, '_' "
	    "and '-', a letter or digit first and last, at most %d bytes",
	    name, NAME_MAX_LEN);
}

int
name_check_host(const char *host, bool wildcard, struct err *e)
{
	const char *p = host;
	size_t len = strlen(host);

	if (wildcard && strncmp(p, "*.", 2) == 0)
		p += 2;
	while (len <= HOST_MAX_LEN) {
		size_t n = strcspn(p, ".");

		if (!label_valid(p, n))
			break;
		if (p[n] == '\0')
			return 0;
		p += n + 1;
	}
	return err_set(e, ERR_USAGE,
	    "host name '%.80s' is not valid: lower-case labels of letters, "
	    "digits, '-' and '_', each at most 63 bytes%s",
	    host, wildcard ? "; the first may be '*'" : "");
}

const char *
name_suggest(const char *wrong, const char *const *names, size_t n)
{
	size_t best_d = strlen(wrong) / 3 + 1;
	const char *best = NULL;

	if (strlen(wrong) > NAME_MAX_LEN)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d = edit_distance(wrong, names[i]);

		if (d < best_d || (d == best_d && best == NULL)) {
			best_d = d;
			best = names[i];
		}
	}
	return best;
}

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool
label_valid(const char *label, size_t len)
{
	if (len == 0 || len > 63 || label[0] == '-' || label[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(label[i]) && label[i] != '-' && label[i] != '_')
			return false;
	return true;
}

/* Optimal string alignment (Levenshtein with swaps of neighbours), on names
 * no longer than NAME_MAX_LEN; a longer one counts as far away. */
static size_t
edit_distance(const char *a, const char *b)
{
	uint8_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
		return NAME_MAX_LEN;
	for (size_t i = 0; i <= la; i++)
		d[i][0] = (uint8_t)i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			uint8_t v = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < v)
				v = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < v)
				v = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < v)
				v = d[i - 2][j - 2] + 1;
			d[i][j] = v;
		}
	}
	return d[la][lb];
}
