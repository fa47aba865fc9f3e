/*
 * token.c: see token.h.  The bytes behind the prefix, in base64url without
 * padding: kind (1), not_after_s (8, big-endian), id (8), secret (16),
 * master_key (32), n_addrs (1), then for each address 4 or 6, its 4 or 16
 * bytes and the port (2, big-endian); last 4 bytes of BLAKE2b over all that.
 */
#include "common/net/token.h"

#include <string.h>

#include <sodium.h>

#define TOKEN_PREFIX	 "muster1."
#define TOKEN_PREFIX_LEN (sizeof(TOKEN_PREFIX) - 1)
#define CHECK_SIZE	 4
#define ADDR_SIZE_MAX	 (1 + 16 + 2)
#define HEAD_SIZE	 (1 + 8 + TOKEN_ID_SIZE + TOKEN_SECRET_SIZE + KEY_SIZE + 1)
#define TOKEN_SIZE_MAX \
	(HEAD_SIZE + TOKEN_ADDRS_MAX * ADDR_SIZE_MAX + CHECK_SIZE)
#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

_Static_assert(sodium_base64_ENCODED_LEN(TOKEN_SIZE_MAX, VARIANT) +
	    TOKEN_PREFIX_LEN <=
	TOKEN_TEXT_MAX,
    "a token fits its text");

static uint8_t *put_bytes(uint8_t *p, const uint8_t *bytes, size_t size);
static uint8_t *put_number(uint8_t *p, uint64_t n, size_t size);
static uint64_t get_number(const uint8_t *p, size_t size);
static uint8_t *put_addr(uint8_t *p, const struct addr *);
static const uint8_t *get_addr(const uint8_t *p, const uint8_t *end,
    struct addr *);
static void check_bytes(const uint8_t *bytes, size_t size,
    uint8_t check[CHECK_SIZE]);
static int parse_bytes(const uint8_t *bytes, size_t size, struct token *);

int
token_encode(const struct token *t, char text[TOKEN_TEXT_MAX], struct err *e)
{
	uint8_t bytes[TOKEN_SIZE_MAX], *p = bytes;

	if (t->n_addrs == 0 || t->n_addrs > TOKEN_ADDRS_MAX)
		return err_set(e, ERR_USAGE,
		    "a token holds 1 to %d addresses of the master, not %zu",
		    TOKEN_ADDRS_MAX, t->n_addrs);
	*p++ = (uint8_t)t->kind;
	p = put_number(p, (uint64_t)t->not_after_s, 8);
	p = put_bytes(p, t->id, sizeof(t->id));
	p = put_bytes(p, t->secret, sizeof(t->secret));
	p = put_bytes(p, t->master_key, KEY_SIZE);
	*p++ = (uint8_t)t->n_addrs;
	for (size_t i = 0; i < t->n_addrs; i++)
		p = put_addr(p, &t->addrs[i]);
	check_bytes(bytes, (size_t)(p - bytes), p);
	p += CHECK_SIZE;
	memcpy(text, TOKEN_PREFIX, TOKEN_PREFIX_LEN);
	sodium_bin2base64(text + TOKEN_PREFIX_LEN,
	    TOKEN_TEXT_MAX - TOKEN_PREFIX_LEN, bytes, (size_t)(p - bytes),
	    VARIANT);
	sodium_memzero(bytes, sizeof(bytes));
	return 0;
}

int
token_decode(const char *text, struct token *t, struct err *e)
{
	struct token out = { .n_addrs = 0 };
	uint8_t bytes[TOKEN_SIZE_MAX], check[CHECK_SIZE];
	const char *end = NULL;
	size_t len, size;
	int rv = -1;

	if (strncmp(text, TOKEN_PREFIX, TOKEN_PREFIX_LEN) != 0)
		return err_set(e, ERR_USAGE,
		    "this is no token: one starts with \"" TOKEN_PREFIX
		    "\" and is printed by clusterctl enroll");
	text += TOKEN_PREFIX_LEN;
	len = strnlen(text, TOKEN_TEXT_MAX);
	if (sodium_base642bin(bytes, sizeof(bytes), text, len, NULL, &size,
		&end, VARIANT) == -1 ||
	    *end != '\0' || size < HEAD_SIZE + CHECK_SIZE)
		goto out;
	check_bytes(bytes, size - CHECK_SIZE, check);
	if (memcmp(check, bytes + size - CHECK_SIZE, CHECK_SIZE) != 0)
		goto out;
	rv = parse_bytes(bytes, size - CHECK_SIZE, &out);
out:
	if (rv == -1)
		err_set(e, ERR_USAGE,
		    "the token is cut or mistyped: copy the whole line again");
	else
		*t = out;
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(&out, sizeof(out));
	return rv;
}

void
token_psk(const uint8_t secret[TOKEN_SECRET_SIZE], uint8_t psk[KEY_SIZE])
{
	static const char label[] = "muster-join-psk-1";

	crypto_generichash(psk, KEY_SIZE, secret, TOKEN_SECRET_SIZE,
	    (const uint8_t *)label, sizeof(label) - 1);
}

/* The whole size is checked by the caller up to the addresses. */
static int
parse_bytes(const uint8_t *bytes, size_t size, struct token *t)
{
	const uint8_t *p = bytes, *end = bytes + size;
	uint64_t not_after;

	if (*p > CERT_OPERATOR)
		return -1;
	t->kind = (enum cert_kind) * p++;
	not_after = get_number(p, 8);
	if (not_after > INT64_MAX)
		return -1;
	t->not_after_s = (int64_t)not_after;
	p += 8;
	memcpy(t->id, p, sizeof(t->id));
	p += sizeof(t->id);
	memcpy(t->secret, p, sizeof(t->secret));
	p += sizeof(t->secret);
	memcpy(t->master_key, p, KEY_SIZE);
	p += KEY_SIZE;
	t->n_addrs = *p++;
	if (t->n_addrs == 0 || t->n_addrs > TOKEN_ADDRS_MAX)
		return -1;
	for (size_t i = 0; i < t->n_addrs && p != NULL; i++)
		p = get_addr(p, end, &t->addrs[i]);
	return p == end ? 0 : -1;
}

static uint8_t *
put_addr(uint8_t *p, const struct addr *a)
{
	bool v4 = a->u.sa.sa_family == AF_INET;
	size_t size = v4 ? 4 : 16;

	*p++ = v4 ? 4 : 6;
	if (v4)
		memcpy(p, &a->u.in.sin_addr, size);
	else
		memcpy(p, &a->u.in6.sin6_addr, size);
	return put_number(p + size, addr_port(a), 2);
}

/* The byte behind the address; NULL when it is none. */
static const uint8_t *
get_addr(const uint8_t *p, const uint8_t *end, struct addr *a)
{
	size_t left = (size_t)(end - p);

	if (left >= 1 + 4 + 2 && *p == 4) {
		a->u.in.sin_family = AF_INET;
		a->len = sizeof(a->u.in);
		memcpy(&a->u.in.sin_addr, p + 1, 4);
		p += 1 + 4;
	} else if (left >= 1 + 16 + 2 && *p == 6) {
		a->u.in6.sin6_family = AF_INET6;
		a->len = sizeof(a->u.in6);
		memcpy(&a->u.in6.sin6_addr, p + 1, 16);
		p += 1 + 16;
	} else {
		return NULL;
	}
	addr_set_port(a, (uint16_t)get_number(p, 2));
	return p + 2;
}

static void
check_bytes(const uint8_t *bytes, size_t size, uint8_t check[CHECK_SIZE])
{
	uint8_t hash[crypto_generichash_BYTES_MIN];

	crypto_generichash(hash, sizeof(hash), bytes, size, NULL, 0);
	memcpy(check, hash, CHECK_SIZE);
}

static uint8_t *
put_bytes(uint8_t *p, const uint8_t *bytes, size_t size)
{
	memcpy(p, bytes, size);
	return p + size;
}

static uint8_t *
put_number(uint8_t *p, uint64_t n, size_t size)
{
	for (size_t i = size; i-- > 0; n >>= 8)
		p[i] = (uint8_t)n;
	return p + size;
}

static uint64_t
get_number(const uint8_t *p, size_t size)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n = n << 8 | p[i];
	return n;
}
