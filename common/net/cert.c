/* cert.c: see cert.h. */
#include "common/net/cert.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/net/proto.h"

#define CERT_LABEL     "muster-cert-1\n"
#define CERT_LABEL_LEN (sizeof(CERT_LABEL) - 1)
#define TIME_MAX_S     253402300799 /* the end of the year 9999 */

static const char *const kind_words[] = {
	[CERT_NODE] = "node",
	[CERT_OPERATOR] = "operator",
};

/* For one that is too late to renew itself. */
static const char *const renewals[] = {
	[CERT_NODE] = "enroll it again",
	[CERT_OPERATOR] = "clusterctl operator token, then operator join "
			  "--replace",
};

/*
 * The last certificate whose signature was good.  An agent meets the same
 * operator again and again, and the check is a fifth of all that a session
 * computes.  Nothing here is secret, and every bit is compared.
 */
static struct {
	uint8_t authority[KEY_SIZE];
	uint8_t bytes[CERT_MAX];
	size_t size;
} last_good;

static bool is_signed(const uint8_t *bytes, size_t size,
    const uint8_t authority_pub[KEY_SIZE]);
static int cert_check(const struct cert *, struct err *);
static json_t *cert_to_json(const struct cert *);
static int cert_from_json(json_t *, struct cert *, struct err *);
static int read_kind(json_t *, struct cert *, struct err *);
static int read_key(json_t *, struct cert *, struct err *);
static int read_grants(json_t *, struct cert *, struct err *);
static size_t verb_length(const char *grant);
static bool is_any_verb(const char *grant, size_t len);

int
cert_sign(const struct cert *c, const uint8_t *authority_secret, uint8_t *out,
    size_t *size, struct err *e)
{
	char message[CERT_LABEL_LEN + CERT_JSON_MAX] = CERT_LABEL;
	json_t *o;
	size_t n;

	if (cert_check(c, e) == -1)
		return -1;
	if ((o = cert_to_json(c)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	n = json_dumpb(o, message + CERT_LABEL_LEN, CERT_JSON_MAX,
	    JSON_COMPACT);
	json_decref(o);
	if (n > CERT_JSON_MAX)
		return err_set(e, ERR_USAGE,
		    "the certificate of %s would take %zu bytes, over %d: "
		    "give fewer grants",
		    c->name, n, CERT_JSON_MAX);
	crypto_sign_detached(out, NULL, (const uint8_t *)message,
	    CERT_LABEL_LEN + n, authority_secret);
	memcpy(out + crypto_sign_BYTES, message + CERT_LABEL_LEN, n);
	*size = crypto_sign_BYTES + n;
	return 0;
}

int
cert_verify(const uint8_t *bytes, size_t size,
    const uint8_t authority_pub[KEY_SIZE], const uint8_t *key, int64_t now_s,
    struct cert *c, struct err *e)
{
	struct cert parsed = { .n_grants = 0 };
	json_t *o;
	int rv;

	if (size <= crypto_sign_BYTES || size > CERT_MAX)
		return err_set(e, ERR_STRANGER, "no certificate");
	if (!is_signed(bytes, size, authority_pub))
		return err_set(e, ERR_STRANGER,
		    "the certificate is not of this cluster");
	if ((o = json_parse_object(bytes + crypto_sign_BYTES,
		 size - crypto_sign_BYTES, CERT_JSON_MAX, e)) == NULL)
		return err_wrap(e, "certificate");
	rv = cert_from_json(o, &parsed, e);
	json_decref(o);
	if (rv == -1)
		return err_wrap(e, "certificate");
	if (key != NULL && sodium_memcmp(parsed.key, key, KEY_SIZE) != 0)
		return err_set(e, ERR_STRANGER,
		    "the certificate of %s is for another key than the one "
		    "in use",
		    parsed.name);
	*c = parsed;
	return cert_check_time(c, now_s, e);
}

int
cert_check_time(const struct cert *c, int64_t now_s, struct err *e)
{
	char when[24];

	if (now_s < c->not_before_s - PROTO_SKEW_S) {
		clock_format_utc(c->not_before_s * 1000, when, sizeof(when));
		return err_set(e, ERR_NOT_YET,
		    "the certificate of %s %s is valid from %s only: compare "
		    "the clocks of both machines",
		    kind_words[c->kind], c->name, when);
	}
	if (now_s > c->not_after_s + PROTO_SKEW_S) {
		clock_format_utc(c->not_after_s * 1000, when, sizeof(when));
		return err_set(e, ERR_EXPIRED,
		    "the certificate of %s %s expired at %s: %s",
		    kind_words[c->kind], c->name, when, renewals[c->kind]);
	}
	return 0;
}

bool
cert_grants(const struct cert *c, const char *verb, const char *const *roles,
    size_t n_roles)
{
	for (size_t i = 0; i < c->n_grants; i++) {
		const char *grant = c->grants[i];
		size_t len = verb_length(grant);

		if (!is_any_verb(grant, len) &&
		    (strlen(verb) != len || memcmp(grant, verb, len) != 0))
			continue;
		if (grant[len] == '\0')
			return true;
		for (size_t r = 0; r < n_roles; r++)
			if (strcmp(grant + len + 1, roles[r]) == 0)
				return true;
	}
	return false;
}

void
key_fingerprint(const uint8_t key[KEY_SIZE], char buf[FINGERPRINT_LEN + 1])
{
	/* No i, l, o, u: it is read aloud and compared by eye. */
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	static const char label[] = "muster-fingerprint-1";
	uint8_t hash[16];
	char *p = buf;

	crypto_generichash(hash, sizeof(hash), key, KEY_SIZE,
	    (const uint8_t *)label, sizeof(label) - 1);
	for (size_t i = 0; i < sizeof(hash); i++) {
		if (i > 0 && i % 4 == 0)
			*p++ = '-';
		*p++ = digits[hash[i] & 31];
	}
	*p = '\0';
}

static bool
is_signed(const uint8_t *bytes, size_t size,
    const uint8_t authority_pub[KEY_SIZE])
{
	uint8_t message[CERT_LABEL_LEN + CERT_JSON_MAX] = CERT_LABEL;
	size_t n = size - crypto_sign_BYTES;

	if (size == last_good.size &&
	    memcmp(bytes, last_good.bytes, size) == 0 &&
	    memcmp(authority_pub, last_good.authority, KEY_SIZE) == 0)
		return true;
	memcpy(message + CERT_LABEL_LEN, bytes + crypto_sign_BYTES, n);
	if (crypto_sign_verify_detached(bytes, message, CERT_LABEL_LEN + n,
		authority_pub) == -1)
		return false;
	memcpy(last_good.authority, authority_pub, KEY_SIZE);
	memcpy(last_good.bytes, bytes, size);
	last_good.size = size;
	return true;
}

static int
cert_check(const struct cert *c, struct err *e)
{
	if (name_check(kind_words[c->kind], c->name, e) == -1)
		return -1;
	if (c->serial == 0 || c->serial > INT64_MAX || c->not_before_s < 0 ||
	    c->not_after_s <= c->not_before_s || c->not_after_s > TIME_MAX_S ||
	    c->n_grants > CERT_GRANTS_MAX)
		return err_set(e, ERR_USAGE,
		    "the certificate of %s needs a serial number, an end "
		    "behind its start and at most %d grants",
		    c->name, CERT_GRANTS_MAX);
	for (size_t i = 0; i < c->n_grants; i++)
		if (grant_check(c->grants[i], e) == -1)
			return -1;
	return 0;
}

static json_t *
cert_to_json(const struct cert *c)
{
	char hex[2 * KEY_SIZE + 1];
	json_t *grants = json_array();

	sodium_bin2hex(hex, sizeof(hex), c->key, KEY_SIZE);
	for (size_t i = 0; i < c->n_grants; i++)
		json_array_append_new(grants, json_string(c->grants[i]));
	/* Takes the array, also when it fails. */
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "kind",
	    kind_words[c->kind], "name", c->name, "key", hex, "serial",
	    (json_int_t)c->serial, "not_before", (json_int_t)c->not_before_s,
	    "not_after", (json_int_t)c->not_after_s, "grants", grants);
}

/* Signed by the authority, but perhaps by a newer or a broken one. */
static int
cert_from_json(json_t *o, struct cert *c, struct err *e)
{
	const char *name;
	int64_t serial;

	if (read_kind(o, c, e) == -1 ||
	    json_get_string(o, "name", NAME_MAX_LEN, &name, e) == -1 ||
	    read_key(o, c, e) == -1 ||
	    json_get_int(o, "serial", 1, INT64_MAX, &serial, e) == -1 ||
	    json_get_int(o, "not_before", 0, TIME_MAX_S, &c->not_before_s, e) ==
		-1 ||
	    json_get_int(o, "not_after", 0, TIME_MAX_S, &c->not_after_s, e) ==
		-1 ||
	    read_grants(o, c, e) == -1)
		return -1;
	memcpy(c->name, name, strlen(name) + 1);
	c->serial = (uint64_t)serial;
	if (cert_check(c, e) == -1) {
		e->code = ERR_PROTOCOL;
		return -1;
	}
	return 0;
}

static int
read_kind(json_t *o, struct cert *c, struct err *e)
{
	const char *kind;

	if (json_get_string(o, "kind", 16, &kind, e) == -1)
		return -1;
	for (size_t i = 0; i < nitems(kind_words); i++)
		if (strcmp(kind, kind_words[i]) == 0) {
			c->kind = (enum cert_kind)i;
			return 0;
		}
	return err_set(e, ERR_PROTOCOL, "unknown kind \"%s\"", kind);
}

static int
read_key(json_t *o, struct cert *c, struct err *e)
{
	const char *hex;
	size_t n;

	if (json_get_string(o, "key", 2 * KEY_SIZE, &hex, e) == -1)
		return -1;
	if (sodium_hex2bin(c->key, KEY_SIZE, hex, strlen(hex), NULL, &n,
		NULL) == -1 ||
	    n != KEY_SIZE)
		return err_set(e, ERR_PROTOCOL,
		    "field \"key\" is not %d bytes in hexadecimal", KEY_SIZE);
	return 0;
}

static int
read_grants(json_t *o, struct cert *c, struct err *e)
{
	json_t *list; /* borrowed from o */

	if (json_opt_strings(o, "grants", CERT_GRANTS_MAX, CERT_GRANT_LEN,
		&list, e) == -1)
		return -1;
	c->n_grants = json_array_size(list);
	for (size_t i = 0; i < c->n_grants; i++) {
		const char *grant = json_string_value(json_array_get(list, i));

		memcpy(c->grants[i], grant, strlen(grant) + 1);
	}
	return 0;
}

static size_t
verb_length(const char *grant)
{
	return strcspn(grant, ":");
}

static bool
is_any_verb(const char *grant, size_t len)
{
	return len == 1 && grant[0] == '*';
}
