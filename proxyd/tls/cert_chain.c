/* cert_chain.c: see cert_chain.h. */
#include "proxyd/tls/cert_chain.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/base/io.h"
#include "common/base/name.h"
#include "common/registry/site_certs.h"

/* Digests that can be forged, or nearly. */
static const int weak_digests[] = { NID_md2, NID_md4, NID_md5, NID_sha1 };

static int add(STACK_OF(X509) *, X509 *take, const char *file, struct err *);
static int check_one(STACK_OF(X509) *, int i, const char *file, int64_t now_s,
    struct err *);
static int check_time(X509 *, int i, const char *file, int64_t now_s,
    struct err *);
static int check_link(STACK_OF(X509) *, int i, const char *file, struct err *);
static bool is_weak(X509 *);
static void warn(STACK_OF(X509) *, json_t *warnings);
static void common_name(const X509_NAME *, char *buf, size_t size);
static bool take_name(const GENERAL_NAME *, char host[HOST_MAX_LEN + 1]);
static bool has_word(const char *words, const char *word);

int
cert_chain_read(const struct cert_check_file *f, STACK_OF(X509) * chain,
    struct err *e)
{
	const uint8_t *at = f->at, *end = f->at + f->size;
	int before = sk_X509_num(chain);
	BIO *bio = NULL;
	X509 *x;
	int rv = 0;

	if (f->size > 0 && f->at[0] == 0x30) {
		while (rv == 0 && at < end &&
		    (x = d2i_X509(NULL, &at, end - at)) != NULL)
			rv = add(chain, x, f->name, e);
		if (rv == 0 && at < end)
			rv = err_set(e, ERR_USAGE,
			    "%.100s is damaged behind certificate %d", f->name,
			    sk_X509_num(chain) - before);
	} else if ((bio = BIO_new_mem_buf(f->at, (int)f->size)) != NULL) {
		while (rv == 0 &&
		    (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
			rv = add(chain, x, f->name, e);
		/* The end of the file is an error, too. */
		if (rv == 0 &&
		    ERR_GET_REASON(ERR_peek_last_error()) !=
			PEM_R_NO_START_LINE)
			rv = err_set(e, ERR_USAGE,
			    "certificate %d in %.100s is damaged",
			    sk_X509_num(chain) - before + 1, f->name);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (rv == 0 && sk_X509_num(chain) == before)
		rv = err_set(e, ERR_USAGE,
		    "there is no certificate in %.100s (PEM is wanted: "
		    "-----BEGIN CERTIFICATE-----)",
		    f->name);
	return rv;
}

static int
add(STACK_OF(X509) * chain, X509 *take, const char *file, struct err *e)
{
	if (sk_X509_num(chain) >= CERT_IMAGE_CHAIN) {
		X509_free(take);
		return err_set(e, ERR_USAGE,
		    "there are more than %d certificates in %.100s; a chain "
		    "has two or three",
		    CERT_IMAGE_CHAIN, file);
	}
	if (sk_X509_push(chain, take) > 0)
		return 0;
	X509_free(take);
	return err_set(e, ERR_LOCAL, "out of memory");
}

int
cert_chain_check(STACK_OF(X509) * chain, const char *file, int64_t now_s,
    json_t *warnings, struct err *e)
{
	X509 *leaf = sk_X509_value(chain, 0);

	for (int i = 0; i < sk_X509_num(chain); i++)
		if (check_one(chain, i, file, now_s, e) == -1)
			return -1;
	if ((X509_get_extended_key_usage(leaf) & XKU_SSL_SERVER) == 0)
		return err_set(e, ERR_USAGE,
		    "the certificate in %.100s is not for servers (its "
		    "extended key usage lacks serverAuth)",
		    file);
	warn(chain, warnings);
	return 0;
}

static int
check_one(STACK_OF(X509) * chain, int i, const char *file, int64_t now_s,
    struct err *e)
{
	X509 *x = sk_X509_value(chain, i);

	if (check_time(x, i, file, now_s, e) == -1 ||
	    (i > 0 && check_link(chain, i, file, e) == -1))
		return -1;
	/* A root is known, not believed for its signature. */
	if (is_weak(x) && X509_self_signed(x, 0) != 1)
		return err_set(e, ERR_USAGE,
		    "certificate %d in %.100s is signed with SHA-1 or weaker, "
		    "which no browser takes; get a new one",
		    i + 1, file);
	return 0;
}

static int
check_time(X509 *x, int i, const char *file, int64_t now_s, struct err *e)
{
	int64_t from = cert_chain_time(X509_get0_notBefore(x));
	int64_t until = cert_chain_time(X509_get0_notAfter(x));
	char date[CERT_CHAIN_DATE];

	if (until <= now_s) {
		cert_chain_date(until, date);
		return err_set(e, ERR_EXPIRED,
		    "certificate %d in %.100s has expired (%s); get a new one",
		    i + 1, file, date);
	}
	if (from > now_s) {
		cert_chain_date(from, date);
		return err_set(e, ERR_NOT_YET,
		    "certificate %d in %.100s is not valid yet, but from %s "
		    "on; is this machine's clock right?",
		    i + 1, file, date);
	}
	return 0;
}

static int
check_link(STACK_OF(X509) * chain, int i, const char *file, struct err *e)
{
	X509 *x = sk_X509_value(chain, i - 1), *by = sk_X509_value(chain, i);
	char subject[64], issuer[64];

	if (X509_check_issued(by, x) == X509_V_OK &&
	    X509_verify(x, X509_get0_pubkey(by)) == 1)
		return 0;
	ERR_clear_error();
	cert_chain_subject(by, subject, sizeof(subject));
	cert_chain_issuer(x, issuer, sizeof(issuer));
	return err_set(e, ERR_USAGE,
	    "%.60s: certificate %d (%.30s) did not sign certificate %d, which "
	    "%.30s did; the order is the site's own, then who signed it, and "
	    "so on",
	    file, i + 1, subject, i, issuer);
}

static bool
is_weak(X509 *x)
{
	int digest = NID_undef;

	X509_get_signature_info(x, &digest, NULL, NULL, NULL);
	for (size_t i = 0; i < nitems(weak_digests); i++)
		if (digest == weak_digests[i])
			return true;
	return false;
}

static void
warn(STACK_OF(X509) * chain, json_t *warnings)
{
	int n = sk_X509_num(chain);
	X509 *last = sk_X509_value(chain, n - 1);
	bool self_signed = X509_self_signed(last, 0) == 1;
	char who[64];

	if (n == 1 && self_signed) {
		json_array_append_new(warnings,
		    json_string("it is self-signed: browsers warn of it"));
		return;
	}
	cert_chain_issuer(last, who, sizeof(who));
	if (self_signed)
		json_array_append_new(warnings,
		    json_sprintf("the root %s need not be sent: clients have "
				 "it, or do not trust it",
			who));
	else if (n == 1)
		json_array_append_new(warnings,
		    json_sprintf("the chain is missing: clients that do not "
				 "know %s refuse it (give the full chain)",
			who));
}

int
cert_chain_names(X509 *x, const char *file, char **names, struct err *e)
{
	GENERAL_NAMES *san =
	    X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	char host[HOST_MAX_LEN + 1], *out = calloc(1, SITE_CERT_NAMES_MAX + 1);
	size_t len = 0;
	int rv = 0;

	if (out == NULL)
		rv = err_set(e, ERR_LOCAL, "out of memory");
	for (int i = 0; rv == 0 && i < sk_GENERAL_NAME_num(san); i++) {
		if (!take_name(sk_GENERAL_NAME_value(san, i), host) ||
		    has_word(out, host))
			continue;
		if (len + strlen(host) + 1 > SITE_CERT_NAMES_MAX)
			rv = err_set(e, ERR_USAGE,
			    "the certificate in %.100s has more than %d bytes "
			    "of names",
			    file, SITE_CERT_NAMES_MAX);
		else
			len += (size_t)snprintf(out + len,
			    SITE_CERT_NAMES_MAX + 1 - len, "%s%s",
			    len > 0 ? " " : "", host);
	}
	if (rv == 0 && len == 0)
		rv = err_set(e, ERR_USAGE,
		    "the certificate in %.100s names no host "
		    "(subjectAltName); a common name alone is not enough for "
		    "browsers",
		    file);
	GENERAL_NAMES_free(san);
	if (rv == 0)
		*names = out;
	else
		free(out);
	return rv;
}

/* Addresses, and what no site can be called, are left out. */
static bool
take_name(const GENERAL_NAME *g, char host[HOST_MAX_LEN + 1])
{
	const uint8_t *at;
	struct err ignored;
	int type, len;
	const ASN1_STRING *text = GENERAL_NAME_get0_value(g, &type);

	if (type != GEN_DNS)
		return false;
	at = ASN1_STRING_get0_data(text);
	len = ASN1_STRING_length(text);
	if (len <= 0 || len > HOST_MAX_LEN ||
	    memchr(at, '\0', (size_t)len) != NULL)
		return false;
	for (int i = 0; i < len; i++)
		host[i] = at[i] >= 'A' && at[i] <= 'Z' ?
		    (char)(at[i] - 'A' + 'a') :
		    (char)at[i];
	host[len] = '\0';
	return name_check_host(host, true, &ignored) == 0;
}

static bool
has_word(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (const char *p = words; *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
	}
	return false;
}

void
cert_chain_subject(X509 *x, char *buf, size_t size)
{
	common_name(X509_get_subject_name(x), buf, size);
}

void
cert_chain_issuer(X509 *x, char *buf, size_t size)
{
	common_name(X509_get_issuer_name(x), buf, size);
}

/* As printable ASCII, since it goes to terminals and into a table. */
static void
common_name(const X509_NAME *name, char *buf, size_t size)
{
	static const int kinds[] = { NID_commonName, NID_organizationName,
		NID_organizationalUnitName };
	uint8_t *utf8 = NULL;
	int n = -1;

	for (size_t i = 0; n <= 0 && i < nitems(kinds); i++) {
		int at = X509_NAME_get_index_by_NID(name, kinds[i], -1);

		if (at < 0)
			continue;
		OPENSSL_free(utf8);
		utf8 = NULL;
		n = ASN1_STRING_to_UTF8(&utf8,
		    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
	}
	snprintf(buf, size, "%.*s", n > 0 ? n : 7,
	    n > 0 ? (const char *)utf8 : "unnamed");
	for (char *p = buf; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	OPENSSL_free(utf8);
}

int64_t
cert_chain_time(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

void
cert_chain_date(int64_t s, char date[CERT_CHAIN_DATE])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(date, CERT_CHAIN_DATE, "%Y-%m-%d %H:%M UTC", &tm) == 0)
		snprintf(date, CERT_CHAIN_DATE, "another age");
}
