/* record_site_cert.c: certificates of sites as JSON objects; see record.h. */
#include "common/registry/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/json.h"
#include "common/registry/roster.h"

#define HASH_HEX (2 * SITE_CERT_HASH)
/* A site's name and aliases with a space each; with all names of a certificate
 * there is still room in a line. */
#define HOSTS_MAX ((SITE_ALIASES_MAX + 1) * (HOST_MAX_LEN + 1))

_Static_assert(HOSTS_MAX + SITE_CERT_NAMES_MAX + 4096 < ROSTER_LINE_MAX,
    "a line of a roster holds a certificate");

static int get_hash(json_t *, const char *field, uint8_t hash[SITE_CERT_HASH],
    bool *there, struct err *);
static int get_texts(json_t *, struct site_cert *, struct err *);
static int get_rest(json_t *, struct site_cert *, struct err *);

json_t *
record_from_site_cert(const struct site_cert *c, enum record_form form)
{
	char key[HASH_HEX + 1], chain[HASH_HEX + 1], staple[HASH_HEX + 1];
	json_t *o = form == RECORD_ROSTER ?
	    json_pack("{s:s, s:s}", "t", "site_cert", "hosts", c->hosts) :
	    json_object();
	json_t *rest;

	sodium_bin2hex(key, sizeof(key), c->key, SITE_CERT_HASH);
	sodium_bin2hex(chain, sizeof(chain), c->chain, SITE_CERT_HASH);
	sodium_bin2hex(staple, sizeof(staple), c->staple, SITE_CERT_HASH);
	rest = json_pack("{s:s, s:s, s:s, s:s, s:s*, s:I, s:I, s:I, s:s, s:s}",
	    "site", c->site, "kind", site_cert_kind_name(c->kind), "key", key,
	    "chain", chain, "staple", c->has_staple ? staple : NULL,
	    "not_before_s", (json_int_t)c->not_before_s, "not_after_s",
	    (json_int_t)c->not_after_s, "staple_until_s",
	    (json_int_t)c->staple_until_s, "issuer", c->issuer, "names",
	    c->names);
	/* One that lacks a member must not be signed or exported. */
	if (o != NULL && (rest == NULL || json_object_update(o, rest) == -1)) {
		json_decref(o);
		o = NULL;
	}
	json_decref(rest);
	return o;
}

int
record_to_site_cert(json_t *o, struct site_cert *c, struct err *e)
{
	struct site_cert out = { .names = NULL };
	const char *site, *kind;
	int rv;

	if (json_get_string(o, "site", HOST_MAX_LEN, &site, e) == -1 ||
	    name_check_host(site, false, e) == -1)
		return -1;
	snprintf(out.site, sizeof(out.site), "%s", site);
	rv = json_get_string(o, "kind", 16, &kind, e);
	if (rv == 0)
		rv = site_cert_kind_parse(kind, &out.kind, e);
	if (rv == 0)
		rv = get_rest(o, &out, e);
	if (rv == 0)
		rv = get_texts(o, &out, e);
	if (rv == -1) {
		site_cert_fini(&out);
		return err_wrap(e, "certificate of site %.64s", site);
	}
	*c = out;
	return 0;
}

static int
get_rest(json_t *o, struct site_cert *c, struct err *e)
{
	bool has_key, has_chain;

	if (get_hash(o, "key", c->key, &has_key, e) == -1 ||
	    get_hash(o, "chain", c->chain, &has_chain, e) == -1 ||
	    get_hash(o, "staple", c->staple, &c->has_staple, e) == -1 ||
	    json_get_int(o, "not_before_s", 0, INT64_MAX, &c->not_before_s,
		e) == -1 ||
	    json_get_int(o, "not_after_s", 0, INT64_MAX, &c->not_after_s, e) ==
		-1 ||
	    json_opt_int(o, "staple_until_s", 0, INT64_MAX, 0,
		&c->staple_until_s, e) == -1)
		return -1;
	if (has_key && has_chain)
		return 0;
	return err_set(e, ERR_PROTOCOL, "its key or its chain is not named");
}

static int
get_texts(json_t *o, struct site_cert *c, struct err *e)
{
	const char *issuer, *names, *hosts;

	if (json_opt_string(o, "issuer", SITE_CERT_ISSUER_MAX, "", &issuer,
		e) == -1 ||
	    json_get_string(o, "names", SITE_CERT_NAMES_MAX, &names, e) == -1 ||
	    json_opt_string(o, "hosts", HOSTS_MAX, "", &hosts, e) == -1 ||
	    site_cert_check_names(names, SITE_CERT_NAMES_MAX, e) == -1 ||
	    (*hosts != '\0' &&
		site_cert_check_names(hosts, HOSTS_MAX, e) == -1))
		return -1;
	snprintf(c->issuer, sizeof(c->issuer), "%s", issuer);
	if ((c->names = strdup(names)) == NULL ||
	    (c->hosts = strdup(hosts)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	return 0;
}

static int
get_hash(json_t *o, const char *field, uint8_t hash[SITE_CERT_HASH],
    bool *there, struct err *e)
{
	const char *hex;
	size_t size;

	if (json_opt_string(o, field, HASH_HEX, NULL, &hex, e) == -1)
		return -1;
	*there = hex != NULL;
	if (hex == NULL)
		return 0;
	if (sodium_hex2bin(hash, SITE_CERT_HASH, hex, strlen(hex), NULL, &size,
		NULL) == -1 ||
	    size != SITE_CERT_HASH)
		return err_set(e, ERR_PROTOCOL,
		    "field \"%s\" is not a SHA-256 in hexadecimal digits",
		    field);
	return 0;
}
