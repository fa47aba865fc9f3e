/* report_certs.c: see report_certs.h. */
#include "proxyd/admin/report_certs.h"

#include <stdlib.h>
#include <string.h>

#define DAY_S 86400

static int by_end(const void *, const void *);

static uint32_t
count(const struct report *r)
{
	return r->certs != NULL ? cert_image_count(r->certs) : 0;
}

json_t *
report_certs(const struct report *r)
{
	json_t *out = json_pack("{s:i}", "certificates", (int)count(r));
	int64_t first = INT64_MAX;

	for (uint32_t i = 0; i < count(r); i++) {
		const struct cert_image_entry *x =
		    cert_image_entry(r->certs, i);

		if (x->not_after_s < first)
			first = x->not_after_s;
	}
	if (count(r) > 0)
		json_object_set_new(out, "not_after_s",
		    json_integer((json_int_t)first));
	return out;
}

json_t *
report_certs_soon(const struct report *r, int64_t now_s)
{
	static const char *const kinds
	    [] = { [CERT_IMAGE_RSA] = "rsa", [CERT_IMAGE_ECDSA] = "ecdsa" };
	const struct cert_image_entry **soon;
	json_t *out = json_array();
	size_t n = 0;

	if ((soon = calloc(count(r) + 1UL, sizeof(*soon))) == NULL) {
		json_decref(out);
		return NULL;
	}
	for (uint32_t i = 0; i < count(r); i++) {
		soon[n] = cert_image_entry(r->certs, i);
		n += soon[n]->not_after_s - now_s < REPORT_CERTS_SOON_S;
	}
	qsort(soon, n, sizeof(*soon), by_end);
	for (size_t i = 0; i < n && i < REPORT_CERTS_MAX; i++)
		json_array_append_new(out,
		    json_pack("{s:s% s:s s:I}", "site",
			(const char *)cert_image_at(r->certs, soon[i]->site),
			(size_t)soon[i]->site.size, "kind",
			kinds[soon[i]->kind], "not_after_s",
			(json_int_t)soon[i]->not_after_s));
	free(soon);
	return out;
}

json_t *
report_cert_days(const struct report *r, const char *host, int64_t now_s)
{
	struct cert_image_found f;
	int64_t left_s = INT64_MAX;

	if (r->certs == NULL ||
	    !cert_image_find(r->certs, host, strlen(host), &f))
		return json_null();
	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++)
		if (f.by_kind[k] != NULL &&
		    f.by_kind[k]->not_after_s - now_s < left_s)
			left_s = f.by_kind[k]->not_after_s - now_s;
	return json_integer(
	    (json_int_t)(left_s >= 0 ? left_s / DAY_S :
				       -((-left_s + DAY_S - 1) / DAY_S)));
}

static int
by_end(const void *a, const void *b)
{
	const struct cert_image_entry *const *x = a, *const *y = b;

	return ((*x)->not_after_s > (*y)->not_after_s) -
	    ((*x)->not_after_s < (*y)->not_after_s);
}
