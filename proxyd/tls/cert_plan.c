/*
 * cert_plan.c: see cert_plan.h.
 *
 * The image: head, the bytes of each certificate as it came, names, entries,
 * the name table.
 */
#include "proxyd/tls/cert_plan.h"

#include <sys/mman.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/io.h"
#include "proxyd/tls/cert_form.h"
#include "proxyd/tls/cert_names.h"

#define SHARED_MAX 256 /* authorities whose certificates stand there once */

/* The certificate of an authority, which many chains share. */
struct shared {
	uint8_t hash[16];
	struct cert_image_bytes bytes;
};

struct cert_plan {
	int fd;
	uint64_t size; /* of what is written */
	struct cert_image_entry *entries;
	size_t n_entries, entries_room;
	struct cert_names *names;
	struct shared shared[SHARED_MAX];
	size_t n_shared;
	char fallback[HOST_MAX_LEN + 1];
};

static int enter(struct cert_plan *, const struct cert_plan_entry *where,
    const struct cert_image_entry *, struct err *);
static int add_bytes(struct cert_plan *, const void *, size_t,
    struct cert_image_bytes *, struct err *);
static int add_chain(struct cert_plan *, const struct cert_plan_bytes *,
    struct cert_image_entry *, struct err *);
static int add_authority(struct cert_plan *, const uint8_t *, size_t,
    struct cert_image_bytes *, struct err *);
static size_t der_size(const uint8_t *, size_t left);
static int make_room(struct cert_plan *, struct err *);
static int write_index(struct cert_plan *, struct cert_image_head *,
    struct err *);
static int pad(struct cert_plan *, struct err *);

struct cert_plan *
cert_plan_new(struct err *e)
{
	struct cert_image_head head = { .size = 0 };
	struct cert_image_bytes ignored;
	struct cert_plan *p = calloc(1, sizeof(*p));

	if (p == NULL || (p->names = cert_names_new(e)) == NULL) {
		free(p);
		err_set(e, ERR_LOCAL, "out of memory for certificates");
		return NULL;
	}
	p->fd = memfd_create("muster-certs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd == -1) {
		err_errno(e, ERR_LOCAL, "cannot make a certificate image");
		cert_plan_free(p);
		return NULL;
	}
	/* Its place; it is known last. */
	if (add_bytes(p, &head, sizeof(head), &ignored, e) == -1) {
		cert_plan_free(p);
		return NULL;
	}
	return p;
}

void
cert_plan_free(struct cert_plan *p)
{
	if (p == NULL)
		return;
	io_close(&p->fd);
	cert_names_free(p->names);
	free(p->entries);
	free(p);
}

int
cert_plan_add(struct cert_plan *p, const struct cert_plan_entry *x,
    struct err *e)
{
	struct cert_image_entry out = {
		.not_before_s = x->not_before_s,
		.not_after_s = x->not_after_s,
		.kind = (uint32_t)x->kind,
		.ocsp_until_s = x->ocsp_until_s,
	};

	if (x->key.size == 0)
		return err_set(e, ERR_CORRUPT, "the key is empty");
	memcpy(out.id, x->id, sizeof(out.id));
	if (add_chain(p, &x->chain, &out, e) == -1 ||
	    add_bytes(p, x->key.at, x->key.size, &out.key, e) == -1 ||
	    add_bytes(p, x->ocsp.at, x->ocsp.size, &out.ocsp, e) == -1)
		return -1;
	return enter(p, x, &out, e);
}

int
cert_plan_keep(struct cert_plan *p, const struct cert_image *from,
    const struct cert_image_entry *x, const struct cert_plan_entry *where,
    struct err *e)
{
	struct cert_image_entry out = *x;
	struct cert_plan_entry named = *where;

	for (uint32_t i = 0; i < x->n_chain; i++) {
		const uint8_t *at = cert_image_at(from, x->chain[i]);
		size_t size = x->chain[i].size;

		if ((i == 0 ?
			    add_bytes(p, at, size, &out.chain[i], e) :
			    add_authority(p, at, size, &out.chain[i], e)) == -1)
			return -1;
	}
	if (add_bytes(p, cert_image_at(from, x->key), x->key.size, &out.key,
		e) == -1 ||
	    add_bytes(p, cert_image_at(from, x->ocsp), x->ocsp.size, &out.ocsp,
		e) == -1)
		return -1;
	named.kind = (enum cert_image_kind)x->kind;
	named.not_after_s = x->not_after_s;
	return enter(p, &named, &out, e);
}

void
cert_plan_default(struct cert_plan *p, const char *site)
{
	size_t len = strlen(site);

	if (len < sizeof(p->fallback))
		memcpy(p->fallback, site, len + 1);
}

int
cert_plan_write(struct cert_plan *p, int *fd, struct err *e)
{
	struct cert_image_head h = { .version = CERT_IMAGE_VERSION };

	memcpy(h.magic, CERT_IMAGE_MAGIC, sizeof(h.magic));
	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++)
		h.fallback[k] = CERT_IMAGE_NONE;
	if (write_index(p, &h, e) == -1)
		return -1;
	h.size = (uint32_t)p->size;
	if (lseek(p->fd, 0, SEEK_SET) == -1 ||
	    io_write_n(p->fd, &h, sizeof(h)) == -1 ||
	    fcntl(p->fd, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot write a certificate image");
	*fd = p->fd;
	p->fd = -1;
	return 0;
}

static int
enter(struct cert_plan *p, const struct cert_plan_entry *where,
    const struct cert_image_entry *x, struct err *e)
{
	struct cert_image_entry *out;

	if (make_room(p, e) == -1)
		return -1;
	out = &p->entries[p->n_entries];
	*out = *x;
	if (add_bytes(p, where->site, strlen(where->site), &out->site, e) ==
		-1 ||
	    cert_names_add(p->names, (uint32_t)p->n_entries, where, e) == -1)
		return -1;
	p->n_entries++;
	return 0;
}

static int
add_bytes(struct cert_plan *p, const void *bytes, size_t size,
    struct cert_image_bytes *out, struct err *e)
{
	if (size > UINT32_MAX - p->size)
		return err_set(e, ERR_LOCAL,
		    "the certificates would take over 4 GiB");
	if (size > 0 && io_write_n(p->fd, bytes, size) == -1)
		return err_errno(e, ERR_LOCAL,
		    "cannot write a certificate image");
	out->off = (uint32_t)p->size;
	out->size = (uint32_t)size;
	p->size += size;
	return 0;
}

static int
add_chain(struct cert_plan *p, const struct cert_plan_bytes *chain,
    struct cert_image_entry *out, struct err *e)
{
	const uint8_t *at = chain->at;
	size_t left = chain->size, size;

	while (left > 0) {
		struct cert_image_bytes *to = &out->chain[out->n_chain];

		if ((size = der_size(at, left)) == 0 ||
		    out->n_chain == CERT_IMAGE_CHAIN)
			return err_set(e, ERR_CORRUPT, "the chain is damaged");
		if ((out->n_chain++ == 0 ?
			    add_bytes(p, at, size, to, e) :
			    add_authority(p, at, size, to, e)) == -1)
			return -1;
		at += size;
		left -= size;
	}
	return out->n_chain > 0 ? 0 :
				  err_set(e, ERR_CORRUPT, "the chain is empty");
}

/* A few authorities sign nearly all there is. */
static int
add_authority(struct cert_plan *p, const uint8_t *bytes, size_t size,
    struct cert_image_bytes *out, struct err *e)
{
	struct shared s;

	crypto_generichash(s.hash, sizeof(s.hash), bytes, size, NULL, 0);
	for (size_t i = 0; i < p->n_shared; i++)
		if (memcmp(p->shared[i].hash, s.hash, sizeof(s.hash)) == 0) {
			*out = p->shared[i].bytes;
			return 0;
		}
	if (add_bytes(p, bytes, size, &s.bytes, e) == -1)
		return -1;
	if (p->n_shared < SHARED_MAX)
		p->shared[p->n_shared++] = s;
	*out = s.bytes;
	return 0;
}

/* The first element's size with its head; 0: damaged.  A certificate is a
 * SEQUENCE of 256 to 65535 bytes, or a small one in a test. */
static size_t
der_size(const uint8_t *at, size_t left)
{
	size_t n_len, len = 0;

	if (left < 2 || at[0] != 0x30)
		return 0;
	if (at[1] < 0x80) {
		n_len = 0;
		len = at[1];
	} else {
		n_len = at[1] & 0x7f;
		if (n_len == 0 || n_len > 3 || n_len > left - 2)
			return 0;
		for (size_t i = 0; i < n_len; i++)
			len = len << 8 | at[2 + i];
	}
	return len <= left - 2 - n_len ? 2 + n_len + len : 0;
}

static int
make_room(struct cert_plan *p, struct err *e)
{
	struct cert_image_entry *more;
	size_t room = p->entries_room == 0 ? 16 : p->entries_room * 2;

	if (p->n_entries < p->entries_room)
		return 0;
	more = reallocarray(p->entries, room, sizeof(*more));
	if (more == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for certificates");
	p->entries = more;
	p->entries_room = room;
	return 0;
}

static int
write_index(struct cert_plan *p, struct cert_image_head *h, struct err *e)
{
	struct cert_image_bytes texts, entries, slots;
	struct cert_names_table t;
	int rv = -1;

	if (cert_names_table(p->names, &t, e) == -1)
		return -1;
	if (*p->fallback != '\0')
		cert_names_find(&t, p->fallback, h->fallback);
	if (add_bytes(p, t.text, t.text_size, &texts, e) == 0) {
		for (uint32_t i = 0; i < t.n_slots; i++)
			if (t.slots[i].name.size != 0)
				t.slots[i].name.off += texts.off;
		if (pad(p, e) == 0 &&
		    add_bytes(p, p->entries, p->n_entries * sizeof(*p->entries),
			&entries, e) == 0 &&
		    pad(p, e) == 0 &&
		    add_bytes(p, t.slots, t.n_slots * sizeof(*t.slots), &slots,
			e) == 0) {
			h->entries_off = entries.off;
			h->n_entries = (uint32_t)p->n_entries;
			h->slots_off = slots.off;
			h->n_slots = t.n_slots;
			rv = 0;
		}
	}
	free(t.slots);
	free(t.text);
	return rv;
}

/* Tables are read in place. */
static int
pad(struct cert_plan *p, struct err *e)
{
	static const char zeros[8];
	struct cert_image_bytes ignored;

	return add_bytes(p, zeros, -p->size & 7, &ignored, e);
}
