/* cert_staple.c: OCSP responses; see cert_chain.h. */
#include "proxyd/tls/cert_chain.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>

#define SKEW_S 300 /* of the responder's clock */

static OCSP_BASICRESP *parse(const struct cert_check_file *, struct err *);
static int check_signature(OCSP_BASICRESP *, X509 *issuer, const char *file,
    struct err *);
static int check_status(OCSP_BASICRESP *, X509 *leaf, X509 *issuer,
    const char *file, int64_t now_s, int64_t *until_s, struct err *);

int
cert_chain_staple(STACK_OF(X509) * chain, const struct cert_check_file *f,
    int64_t now_s, int64_t *until_s, struct err *e)
{
	X509 *leaf = sk_X509_value(chain, 0), *issuer;
	OCSP_BASICRESP *basic;
	int rv;

	if (sk_X509_num(chain) < 2)
		return err_set(e, ERR_USAGE,
		    "the OCSP response in %.100s cannot be checked without "
		    "the certificate of who signed (give the full chain)",
		    f->name);
	issuer = sk_X509_value(chain, 1);
	if ((basic = parse(f, e)) == NULL)
		return -1;
	rv = check_status(basic, leaf, issuer, f->name, now_s, until_s, e);
	if (rv == 0)
		rv = check_signature(basic, issuer, f->name, e);
	OCSP_BASICRESP_free(basic);
	ERR_clear_error();
	return rv;
}

static OCSP_BASICRESP *
parse(const struct cert_check_file *f, struct err *e)
{
	const uint8_t *at = f->at;
	OCSP_RESPONSE *r = d2i_OCSP_RESPONSE(NULL, &at, (long)f->size);
	OCSP_BASICRESP *basic = NULL;

	if (r == NULL || at != f->at + f->size)
		err_set(e, ERR_USAGE,
		    "there is no OCSP response in %.100s (DER is wanted, as "
		    "openssl ocsp -respout writes it)",
		    f->name);
	else if (OCSP_response_status(r) != OCSP_RESPONSE_STATUS_SUCCESSFUL ||
	    (basic = OCSP_response_get1_basic(r)) == NULL)
		err_set(e, ERR_USAGE,
		    "the OCSP response in %.100s is a failure: %.60s", f->name,
		    OCSP_response_status_str(OCSP_response_status(r)));
	OCSP_RESPONSE_free(r);
	return basic;
}

static int
check_status(OCSP_BASICRESP *basic, X509 *leaf, X509 *issuer, const char *file,
    int64_t now_s, int64_t *until_s, struct err *e)
{
	OCSP_CERTID *id = OCSP_cert_to_id(NULL, leaf, issuer);
	ASN1_GENERALIZEDTIME *from = NULL, *until = NULL;
	char date[CERT_CHAIN_DATE];
	int status = -1, found;

	found = id != NULL &&
	    OCSP_resp_find_status(basic, id, &status, NULL, NULL, &from,
		&until) == 1;
	OCSP_CERTID_free(id);
	if (!found)
		return err_set(e, ERR_USAGE,
		    "the OCSP response in %.100s is about another certificate",
		    file);
	if (status != V_OCSP_CERTSTATUS_GOOD)
		return err_set(e, ERR_USAGE,
		    "the OCSP response in %.100s says: %.30s", file,
		    OCSP_cert_status_str(status));
	if (until == NULL)
		return err_set(e, ERR_USAGE,
		    "the OCSP response in %.100s does not say until when it "
		    "is good",
		    file);
	*until_s = cert_chain_time(until);
	cert_chain_date(*until_s, date);
	if (*until_s <= now_s)
		return err_set(e, ERR_EXPIRED,
		    "the OCSP response in %.100s has expired (%s); fetch a "
		    "new one",
		    file, date);
	if (cert_chain_time(from) > now_s + SKEW_S)
		return err_set(e, ERR_NOT_YET,
		    "the OCSP response in %.100s is from the future; is this "
		    "machine's clock right?",
		    file);
	return 0;
}

/* By the issuer, or by whom it appointed with a certificate in there. */
static int
check_signature(OCSP_BASICRESP *basic, X509 *issuer, const char *file,
    struct err *e)
{
	STACK_OF(X509) *known = sk_X509_new_null();
	X509_STORE *store = X509_STORE_new();
	int good = 0;

	if (known != NULL && store != NULL && sk_X509_push(known, issuer) > 0 &&
	    X509_STORE_add_cert(store, issuer) == 1) {
		X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
		good = OCSP_basic_verify(basic, known, store, 0);
	}
	sk_X509_free(known);
	X509_STORE_free(store);
	if (good == 1)
		return 0;
	return err_set(e, ERR_USAGE,
	    "the OCSP response in %.100s is not signed by who signed the "
	    "certificate",
	    file);
}
