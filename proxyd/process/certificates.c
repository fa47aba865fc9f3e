/*
 * certificates.c: see certificates.h.
 *
 * A look walks through the rows twice: once for their digest, which mostly is
 * the last one's, and only then to make an image.
 */
#include "proxyd/process/certificates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "common/custody/custody.h"
#include "proxyd/tls/cert_plan.h"

#define PATIENCE_MS 5000 /* for files that are on their way */
#define TICK_MS	    50	 /* two changes within it may have one time */
#define SAID_MAX    10	 /* lines about what is left out */
#define REMIND_S    (14 * 86400)
#define DAY_S	    86400

_Static_assert((int)SITE_CERT_RSA == (int)CERT_IMAGE_RSA &&
	(int)SITE_CERT_ECDSA == (int)CERT_IMAGE_ECDSA,
    "the registry and the image number kinds alike");

/* An entry of the last image, found by its id. */
struct known {
	uint8_t id[CERT_IMAGE_ID];
	uint32_t entry;
};

struct certificates {
	struct state state;
	struct cert_image *last; /* NULL: none was made */
	struct known *known;	 /* of last; by id */
	uint8_t digest[crypto_generichash_BYTES];
	bool has_digest;
	/* What is left out now. */
	uint32_t n_missing;
	int64_t missing_since_ms; /* the first of them */
	bool said;
	struct timespec changed; /* custody, when it was looked at */
	int64_t reminded_s;
};

/* One look. */
struct look {
	struct certificates *all;
	struct custody custody;
	bool has_custody;
	bool from_registry;
	struct cert_plan *plan;
	crypto_generichash_state digest;
	uint32_t n_missing;
	bool say;
	struct err *e;
};

static site_cert_fn digest_row, add_row;
static int walk(struct look *, struct source *, site_cert_fn *, struct err *);
static int take_digest(struct look *, struct source *, const char *fallback,
    uint8_t digest[crypto_generichash_BYTES], struct err *);
static int build(struct look *, struct source *, const char *fallback, int *fd,
    struct err *);
static void note_custody(struct certificates *, const struct custody *);
static int adopt(struct certificates *, int fd, struct err *);
static void check_fallback(const struct certificates *, const char *site);
static void settle(struct certificates *, const struct look *);
static void identify(const struct site_cert *, uint8_t id[CERT_IMAGE_ID]);
static const struct cert_image_entry *find(const struct certificates *,
    const uint8_t id[CERT_IMAGE_ID]);
static const struct cert_image_entry *find_present(const struct certificates *,
    const struct site_cert *);
static int load(struct look *, const struct site_cert *,
    struct cert_plan_entry *, struct err *);
static int leave_out(struct look *, const struct site_cert *,
    const struct cert_plan_entry *, const struct err *why);
static int by_id(const void *, const void *);

struct certificates *
certificates_new(const struct state *st, struct err *e)
{
	struct certificates *c = calloc(1, sizeof(*c));

	if (c == NULL)
		err_set(e, ERR_LOCAL, "out of memory for certificates");
	else
		c->state = *st;
	return c;
}

void
certificates_free(struct certificates *c)
{
	if (c == NULL)
		return;
	cert_image_release(c->last);
	free(c->known);
	free(c);
}

int
certificates_look(struct certificates *c, struct source *s,
    const char *fallback, int *fd, struct err *e)
{
	uint8_t digest[crypto_generichash_BYTES];
	struct look l = { .all = c,
		.from_registry = source_is_registry(s),
		.e = e };
	int rv;

	*fd = -1;
	if (source_begin(s, e) == -1)
		return -1;
	rv = take_digest(&l, s, fallback, digest, e);
	if (rv == 0 &&
	    (!c->has_digest || certificates_due(c) ||
		memcmp(digest, c->digest, sizeof(digest)) != 0))
		rv = build(&l, s, fallback, fd, e);
	source_end(s);
	if (rv == 0) {
		memcpy(c->digest, digest, sizeof(digest));
		c->has_digest = true;
	}
	return rv;
}

bool
certificates_due(const struct certificates *c)
{
	struct custody now;
	struct timespec t;
	struct err ignored;

	if (c->n_missing == 0)
		return false;
	if (!c->said && clock_mono_ms() - c->missing_since_ms > PATIENCE_MS)
		return true;
	if (custody_open(&now, &c->state, &ignored) == -1)
		return false;
	t = custody_changed(&now);
	custody_close(&now);
	return t.tv_sec != c->changed.tv_sec || t.tv_nsec != c->changed.tv_nsec;
}

void
certificates_remind(struct certificates *c, int64_t now_s)
{
	const struct cert_image_entry *first = NULL, *x;
	uint32_t n = 0;

	if (c->last == NULL || now_s - c->reminded_s < DAY_S)
		return;
	c->reminded_s = now_s;
	for (uint32_t i = 0; i < cert_image_count(c->last); i++) {
		x = cert_image_entry(c->last, i);
		if (x->not_after_s - now_s >= REMIND_S)
			continue;
		n++;
		if (first == NULL || x->not_after_s < first->not_after_s)
			first = x;
	}
	if (first == NULL)
		return;
	log_warn("%u certificate(s) end within 14 days, that of site %.*s in "
		 "%" PRId64 " day(s); renew them (clusterctl certs --expiring "
		 "14d)",
	    n, (int)first->site.size,
	    (const char *)cert_image_at(c->last, first->site),
	    first->not_after_s > now_s ? (first->not_after_s - now_s) / DAY_S :
					 0);
}

/* ---- a look ------------------------------------------------------------ */

/* Whatever the image depends on, but for the files themselves. */
static int
take_digest(struct look *l, struct source *s, const char *fallback,
    uint8_t digest[crypto_generichash_BYTES], struct err *e)
{
	crypto_generichash_init(&l->digest, NULL, 0, crypto_generichash_BYTES);
	crypto_generichash_update(&l->digest, (const uint8_t *)fallback,
	    strlen(fallback) + 1);
	if (walk(l, s, digest_row, e) == -1)
		return -1;
	crypto_generichash_final(&l->digest, digest, crypto_generichash_BYTES);
	return 0;
}

static int
walk(struct look *l, struct source *s, site_cert_fn *fn, struct err *e)
{
	return source_each_site_cert(s, fn, l, e) == 0 ? 0 : -1;
}

static int
digest_row(const struct site_cert *c, void *arg)
{
	const char *texts[] = { c->site, c->hosts, c->names };
	struct look *l = arg;
	uint8_t id[CERT_IMAGE_ID];

	identify(c, id);
	crypto_generichash_update(&l->digest, id, sizeof(id));
	for (size_t i = 0; i < nitems(texts); i++)
		crypto_generichash_update(&l->digest, (const uint8_t *)texts[i],
		    strlen(texts[i]) + 1);
	return 0;
}

static void
identify(const struct site_cert *c, uint8_t id[CERT_IMAGE_ID])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, CERT_IMAGE_ID);
	crypto_generichash_update(&h, c->key, sizeof(c->key));
	crypto_generichash_update(&h, c->chain, sizeof(c->chain));
	if (c->has_staple)
		crypto_generichash_update(&h, c->staple, sizeof(c->staple));
	crypto_generichash_final(&h, id, CERT_IMAGE_ID);
}

static int
build(struct look *l, struct source *s, const char *fallback, int *fd,
    struct err *e)
{
	struct certificates *c = l->all;
	struct err refused;
	int image = -1, rv = -1;

	l->say = c->n_missing > 0 && !c->said &&
	    clock_mono_ms() - c->missing_since_ms > PATIENCE_MS;
	/* Without custody everything is missing, and this says why. */
	l->has_custody = custody_open(&l->custody, &c->state, &refused) == 0;
	if (l->has_custody)
		note_custody(c, &l->custody);
	else
		log_warn("%s", refused.text);
	if ((l->plan = cert_plan_new(e)) != NULL &&
	    walk(l, s, add_row, e) == 0) {
		cert_plan_default(l->plan, fallback);
		rv = cert_plan_write(l->plan, &image, e);
	}
	cert_plan_free(l->plan);
	if (l->has_custody)
		custody_close(&l->custody);
	if (rv == 0 && (rv = adopt(c, image, e)) == 0) {
		settle(c, l);
		check_fallback(c, fallback);
		*fd = image;
	} else
		io_close(&image);
	return rv;
}

/* What has changed just now may do so again without another time: then it is
 * looked at once more. */
static void
note_custody(struct certificates *c, const struct custody *custody)
{
	int64_t at_ms;

	c->changed = custody_changed(custody);
	at_ms = c->changed.tv_sec * 1000 + c->changed.tv_nsec / 1000000;
	if (clock_wall_ms() - at_ms < TICK_MS)
		c->changed = (struct timespec){ 0, 0 };
}

static int
add_row(const struct site_cert *c, void *arg)
{
	struct look *l = arg;
	struct cert_plan_entry x = { .site = c->site,
		.hosts = c->hosts,
		.names = c->names,
		.kind = (enum cert_image_kind)c->kind,
		.not_before_s = c->not_before_s,
		.not_after_s = c->not_after_s,
		.ocsp_until_s = c->staple_until_s };
	const struct cert_image_entry *present;
	struct err why;

	identify(c, x.id);
	if ((present = find(l->all, x.id)) != NULL)
		return cert_plan_keep(l->plan, l->all->last, present, &x, l->e);
	return load(l, c, &x, &why) == 0 ? 0 : leave_out(l, c, &x, &why);
}

/* From custody into the plan. */
static int
load(struct look *l, const struct site_cert *c, struct cert_plan_entry *x,
    struct err *why)
{
	const struct {
		enum custody_kind kind;
		const uint8_t *hash;
		struct cert_plan_bytes *to;
	} files[] = {
		{ CUSTODY_CHAIN, c->chain, &x->chain },
		{ CUSTODY_KEY, c->key, &x->key },
		{ CUSTODY_STAPLE, c->has_staple ? c->staple : NULL, &x->ocsp },
	};
	struct custody_bytes b[nitems(files)] = { 0 };
	int rv = 0;

	if (!l->has_custody)
		return err_set(why, ERR_LOCAL, "its files cannot be read");
	for (size_t i = 0; rv == 0 && i < nitems(files); i++) {
		if (files[i].hash == NULL)
			continue;
		rv = custody_read(&l->custody, files[i].kind, files[i].hash,
		    &b[i], why);
		*files[i].to = (struct cert_plan_bytes){ b[i].at, b[i].size };
	}
	if (rv == 0)
		rv = cert_plan_add(l->plan, x, why);
	for (size_t i = 0; i < nitems(files); i++)
		custody_wipe(&b[i]);
	return rv;
}

/* The others go on; and what the site had until now is better than
 * nothing. */
static int
leave_out(struct look *l, const struct site_cert *c,
    const struct cert_plan_entry *x, const struct err *why)
{
	const struct cert_image_entry *present = find_present(l->all, c);

	l->n_missing++;
	if (l->say && l->n_missing <= SAID_MAX)
		log_warn("the %s certificate of site %.80s %s: %s; %s",
		    site_cert_kind_name(c->kind), c->site,
		    present != NULL ? "is not the new one" : "is left out",
		    why->text,
		    l->from_registry ?
			"give it again (clusterctl site cert)" :
			"its agent fetches it from a master (this node "
			"needs the role master or proxy)");
	if (present == NULL)
		return 0;
	return cert_plan_keep(l->plan, l->all->last, present, x, l->e);
}

/* The image becomes the last one. */
static int
adopt(struct certificates *c, int fd, struct err *e)
{
	struct cert_image *image = cert_image_map(fd, e);
	struct known *known;
	uint32_t n;

	if (image == NULL)
		return -1;
	n = cert_image_count(image);
	if ((known = calloc(n + 1UL, sizeof(*known))) == NULL) {
		cert_image_release(image);
		return err_set(e, ERR_LOCAL, "out of memory for certificates");
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(known[i].id, cert_image_entry(image, i)->id,
		    CERT_IMAGE_ID);
		known[i].entry = i;
	}
	qsort(known, n, sizeof(*known), by_id);
	cert_image_release(c->last);
	free(c->known);
	c->last = image;
	c->known = known;
	return 0;
}

static void
check_fallback(const struct certificates *c, const char *site)
{
	struct cert_image_found ignored;

	if (*site != '\0' && !cert_image_find(c->last, "", 0, &ignored))
		log_warn("proxy.https.default_cert: site %.80s has no "
			 "certificate (clusterctl site cert); unknown names "
			 "are refused",
		    site);
}

static void
settle(struct certificates *c, const struct look *l)
{
	if (l->say && l->n_missing > SAID_MAX)
		log_warn("%u certificates more are left out",
		    l->n_missing - SAID_MAX);
	if (l->n_missing > c->n_missing || l->n_missing == 0) {
		c->missing_since_ms = clock_mono_ms();
		c->said = false;
	} else
		c->said = c->said || l->say;
	c->n_missing = l->n_missing;
}

static const struct cert_image_entry *
find(const struct certificates *c, const uint8_t id[CERT_IMAGE_ID])
{
	struct known key;
	const struct known *k;

	if (c->last == NULL)
		return NULL;
	memcpy(key.id, id, sizeof(key.id));
	k = bsearch(&key, c->known, cert_image_count(c->last), sizeof(*k),
	    by_id);
	return k != NULL ? cert_image_entry(c->last, k->entry) : NULL;
}

static const struct cert_image_entry *
find_present(const struct certificates *c, const struct site_cert *row)
{
	uint32_t n = c->last != NULL ? cert_image_count(c->last) : 0;
	size_t len = strlen(row->site);

	for (uint32_t i = 0; i < n; i++) {
		const struct cert_image_entry *x = cert_image_entry(c->last, i);

		if (x->kind == (uint32_t)row->kind && x->site.size == len &&
		    memcmp(cert_image_at(c->last, x->site), row->site, len) ==
			0)
			return x;
	}
	return NULL;
}

static int
by_id(const void *a, const void *b)
{
	return memcmp(a, b, CERT_IMAGE_ID);
}
