/* cert_image.c: see cert_image.h. */
#include "proxyd/tls/cert_image.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>

#include "proxyd/process/unmap.h"
#include "proxyd/tls/cert_form.h"

static int check(const struct cert_image_head *, size_t size, struct err *);
static bool entry_fits(const struct cert_image_head *,
    const struct cert_image_entry *);
static bool slots_fit(const struct cert_image_head *);
static bool normalise(const char *name, size_t len, char out[HOST_MAX_LEN],
    size_t *out_len);
static bool take(const struct cert_image *, const uint32_t by_kind[],
    struct cert_image_found *);
static bool look_up(const struct cert_image *, uint64_t hash, const char *name,
    size_t len, struct cert_image_found *);

static const void *
at(const struct cert_image_head *h, uint32_t off)
{
	return (const char *)h + off;
}

static const struct cert_image_entry *
entries(const struct cert_image_head *h)
{
	return at(h, h->entries_off);
}

static const struct cert_image_slot *
slots(const struct cert_image_head *h)
{
	return at(h, h->slots_off);
}

struct cert_image *
cert_image_map(int fd, struct err *e)
{
	struct cert_image *c;
	struct stat sb;
	size_t size;
	void *image;

	if (fstat(fd, &sb) == -1) {
		err_errno(e, ERR_LOCAL, "cannot stat a certificate image");
		return NULL;
	}
	size = (size_t)sb.st_size;
	if (size < sizeof(struct cert_image_head)) {
		err_set(e, ERR_CORRUPT, "a certificate image is cut off");
		return NULL;
	}
	image = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (image == MAP_FAILED) {
		err_errno(e, ERR_LOCAL, "cannot map a certificate image");
		return NULL;
	}
	if (check(image, size, e) == -1) {
		munmap(image, size);
		return NULL;
	}
	madvise(image, size, MADV_DONTDUMP);
	if ((c = malloc(sizeof(*c))) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for certificates");
		munmap(image, size);
		return NULL;
	}
	c->head = image;
	c->refs = 1;
	return c;
}

struct cert_image *
cert_image_hold(struct cert_image *c)
{
	c->refs++;
	return c;
}

void
cert_image_release(struct cert_image *c)
{
	if (c == NULL || --c->refs > 0)
		return;
	unmap_later((void *)(uintptr_t)c->head, c->head->size);
	free(c);
}

bool
cert_image_find(const struct cert_image *c, const char *name, size_t len,
    struct cert_image_found *found)
{
	uint64_t hash = CERT_FORM_HASH, wild = 0;
	char host[HOST_MAX_LEN];
	size_t dot = 0;

	if (!normalise(name, len, host, &len))
		return take(c, c->head->fallback, found);
	for (size_t i = len; i-- > 0;) {
		hash = cert_form_hash(hash, host[i]);
		if (host[i] == '.') {
			dot = i;
			wild = hash;
		}
	}
	return look_up(c, hash, host, len, found) ||
	    (dot > 0 && look_up(c, wild, host + dot, len - dot, found)) ||
	    take(c, c->head->fallback, found);
}

uint32_t
cert_image_count(const struct cert_image *c)
{
	return c->head->n_entries;
}

const struct cert_image_entry *
cert_image_entry(const struct cert_image *c, uint32_t i)
{
	return entries(c->head) + i;
}

const uint8_t *
cert_image_at(const struct cert_image *c, struct cert_image_bytes b)
{
	return at(c->head, b.off);
}

/* False for what can be no host name: too long, or it would stand for a
 * wildcard. */
static bool
normalise(const char *name, size_t len, char out[HOST_MAX_LEN], size_t *out_len)
{
	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len == 0 || len > HOST_MAX_LEN || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ?
		    (char)(name[i] - 'A' + 'a') :
		    name[i];
	*out_len = len;
	return true;
}

static bool
look_up(const struct cert_image *c, uint64_t hash, const char *name, size_t len,
    struct cert_image_found *found)
{
	const struct cert_image_slot *s = slots(c->head);
	uint32_t n = c->head->n_slots, i = cert_form_place(hash, n);

	for (; s[i].name.size != 0; i = (i + 1) & (n - 1))
		if (s[i].hash == hash && s[i].name.size == len &&
		    memcmp(at(c->head, s[i].name.off), name, len) == 0)
			return take(c, s[i].by_kind, found);
	return false;
}

static bool
take(const struct cert_image *c, const uint32_t by_kind[],
    struct cert_image_found *found)
{
	bool any = false;

	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++) {
		found->by_kind[k] = by_kind[k] == CERT_IMAGE_NONE ?
		    NULL :
		    entries(c->head) + by_kind[k];
		any = any || found->by_kind[k] != NULL;
	}
	return any;
}

/* ---- what comes from outside is checked once -------------------------- */

static bool
bytes_fit(const struct cert_image_head *h, struct cert_image_bytes b)
{
	return b.off <= h->size && b.size <= h->size - b.off;
}

static bool
table_fits(const struct cert_image_head *h, uint32_t off, uint32_t n,
    size_t row)
{
	return off % 8 == 0 && off <= h->size && n <= (h->size - off) / row;
}

static bool
choice_fits(const struct cert_image_head *h, const uint32_t by_kind[])
{
	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++)
		if (by_kind[k] != CERT_IMAGE_NONE && by_kind[k] >= h->n_entries)
			return false;
	return true;
}

static int
check(const struct cert_image_head *h, size_t size, struct err *e)
{
	if (memcmp(h->magic, CERT_IMAGE_MAGIC, sizeof(h->magic)) != 0 ||
	    h->version != CERT_IMAGE_VERSION)
		return err_set(e, ERR_CORRUPT,
		    "a certificate image is not of version %d",
		    CERT_IMAGE_VERSION);
	if (h->size != size ||
	    !table_fits(h, h->entries_off, h->n_entries,
		sizeof(struct cert_image_entry)) ||
	    !table_fits(h, h->slots_off, h->n_slots,
		sizeof(struct cert_image_slot)) ||
	    !choice_fits(h, h->fallback) || !slots_fit(h))
		goto bad;
	for (uint32_t i = 0; i < h->n_entries; i++)
		if (!entry_fits(h, entries(h) + i))
			goto bad;
	return 0;
bad:
	return err_set(e, ERR_CORRUPT,
	    "something in a certificate image points outside");
}

static bool
entry_fits(const struct cert_image_head *h, const struct cert_image_entry *x)
{
	if (x->kind >= CERT_IMAGE_KINDS || x->n_chain == 0 ||
	    x->n_chain > CERT_IMAGE_CHAIN || x->key.size == 0 ||
	    !bytes_fit(h, x->key) || !bytes_fit(h, x->ocsp) ||
	    !bytes_fit(h, x->site))
		return false;
	for (uint32_t i = 0; i < x->n_chain; i++)
		if (x->chain[i].size == 0 || !bytes_fit(h, x->chain[i]))
			return false;
	return true;
}

/* Without a free one a look-up would never end. */
static bool
slots_fit(const struct cert_image_head *h)
{
	bool has_free = false;

	if (h->n_slots == 0 || (h->n_slots & (h->n_slots - 1)) != 0)
		return false;
	for (uint32_t i = 0; i < h->n_slots; i++) {
		const struct cert_image_slot *s = slots(h) + i;

		if (s->name.size == 0)
			has_free = true;
		else if (!bytes_fit(h, s->name) || !choice_fits(h, s->by_kind))
			return false;
	}
	return has_free;
}
