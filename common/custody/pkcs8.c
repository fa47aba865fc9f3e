/* pkcs8.c: see pkcs8.h. */
#include "common/custody/pkcs8.h"

#include <string.h>

#include <sodium.h>

enum der_tag {
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_OCTETS = 0x04,
	DER_SEQUENCE = 0x30,
	DER_PARAMETERS = 0xa0, /* [0] and [1] of an EC private key */
	DER_PUBLIC = 0xa1,
};

/* Elements that are still to be read; or one element's content, or one
 * whole. */
struct der {
	const uint8_t *at;
	size_t size;
};

static bool take(struct der *from, uint8_t tag, struct der *content,
    struct der *whole);
static bool skip(struct der *from, uint8_t tag);
static bool rsa_public(struct der key, struct der *numbers);
static bool ec_public(struct der key, struct der *bits);
static void hash_info(struct der algorithm, const uint8_t *unused,
    size_t n_unused, struct der head, struct der body,
    uint8_t hash[PKCS8_HASH]);
static size_t put_head(uint8_t *out, uint8_t tag, size_t size);

/* rsaEncryption and id-ecPublicKey, as they stand in an algorithm. */
static const uint8_t rsa_oid[] = { 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7,
	0x0d, 0x01, 0x01, 0x01 };
static const uint8_t ec_oid[] = { 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d,
	0x02, 0x01 };

static bool
begins_with(struct der d, const uint8_t *bytes, size_t size)
{
	return d.size >= size && memcmp(d.at, bytes, size) == 0;
}

bool
pkcs8_public_hash(const uint8_t *der, size_t size, uint8_t hash[PKCS8_HASH])
{
	struct der all = { der, size }, info, oid, algorithm, key, public;
	const struct der none = { NULL, 0 };
	uint8_t head[8];

	if (!take(&all, DER_SEQUENCE, &info, NULL) || all.size != 0 ||
	    !skip(&info, DER_INTEGER) ||
	    !take(&info, DER_SEQUENCE, &oid, &algorithm) ||
	    !take(&info, DER_OCTETS, &key, NULL))
		return false;
	if (begins_with(oid, ec_oid, sizeof(ec_oid)) &&
	    ec_public(key, &public)) {
		/* Its first byte says how many bits are unused, as there. */
		hash_info(algorithm, NULL, 0, none, public, hash);
		return true;
	}
	if (begins_with(oid, rsa_oid, sizeof(rsa_oid)) &&
	    rsa_public(key, &public)) {
		struct der numbers = { head,
			put_head(head, DER_SEQUENCE, public.size) };

		hash_info(algorithm, (const uint8_t[]){ 0 }, 1, numbers, public,
		    hash);
		return true;
	}
	return false;
}

/* RSAPrivateKey begins with its version; then come the two numbers that
 * RSAPublicKey holds. */
static bool
rsa_public(struct der key, struct der *numbers)
{
	struct der inner, modulus, exponent;

	if (!take(&key, DER_SEQUENCE, &inner, NULL) ||
	    !skip(&inner, DER_INTEGER) ||
	    !take(&inner, DER_INTEGER, NULL, &modulus) ||
	    !take(&inner, DER_INTEGER, NULL, &exponent))
		return false;
	numbers->at = modulus.at;
	numbers->size = modulus.size + exponent.size;
	return true;
}

static bool
ec_public(struct der key, struct der *bits)
{
	struct der inner, outer;

	if (!take(&key, DER_SEQUENCE, &inner, NULL) ||
	    !skip(&inner, DER_INTEGER) || !skip(&inner, DER_OCTETS))
		return false;
	if (inner.size > 0 && *inner.at == DER_PARAMETERS &&
	    !skip(&inner, DER_PARAMETERS))
		return false;
	return take(&inner, DER_PUBLIC, &outer, NULL) &&
	    take(&outer, DER_BITS, bits, NULL) && bits->size > 1;
}

/* SEQUENCE { algorithm, BIT STRING { unused, head, body } } */
static void
hash_info(struct der algorithm, const uint8_t *unused, size_t n_unused,
    struct der head, struct der body, uint8_t hash[PKCS8_HASH])
{
	uint8_t bits[8], sequence[8];
	size_t size = n_unused + head.size + body.size;
	size_t n_bits = put_head(bits, DER_BITS, size);
	size_t n_sequence =
	    put_head(sequence, DER_SEQUENCE, algorithm.size + n_bits + size);
	const struct der parts[] = { { sequence, n_sequence }, algorithm,
		{ bits, n_bits }, { unused, n_unused }, head, body };
	crypto_hash_sha256_state s;

	crypto_hash_sha256_init(&s);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].size > 0)
			crypto_hash_sha256_update(&s, parts[i].at,
			    parts[i].size);
	crypto_hash_sha256_final(&s, hash);
}

/* One element off the front, if it is of this type: its content, and all of
 * it; either may be NULL. */
static bool
take(struct der *from, uint8_t tag, struct der *content, struct der *whole)
{
	size_t head = 2, len;

	if (from->size < 2 || from->at[0] != tag)
		return false;
	len = from->at[1];
	if (len >= 0x80) {
		size_t n = len & 0x7f;

		if (n == 0 || n > 3 || n > from->size - 2)
			return false;
		len = 0;
		for (size_t i = 0; i < n; i++)
			len = len << 8 | from->at[2 + i];
		head += n;
	}
	if (len > from->size - head)
		return false;
	if (content != NULL)
		*content = (struct der){ from->at + head, len };
	if (whole != NULL)
		*whole = (struct der){ from->at, head + len };
	from->at += head + len;
	from->size -= head + len;
	return true;
}

static bool
skip(struct der *from, uint8_t tag)
{
	return take(from, tag, NULL, NULL);
}

/* At most 5 bytes; how many. */
static size_t
put_head(uint8_t *out, uint8_t tag, size_t size)
{
	size_t n = 0;

	out[n++] = tag;
	if (size >= 0x10000) {
		out[n++] = 0x83;
		out[n++] = (uint8_t)(size >> 16);
	} else if (size >= 0x100)
		out[n++] = 0x82;
	else if (size >= 0x80)
		out[n++] = 0x81;
	if (size >= 0x100)
		out[n++] = (uint8_t)(size >> 8);
	out[n++] = (uint8_t)size;
	return n;
}
