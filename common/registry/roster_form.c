/* roster_form.c: see roster_form.h. */
#include "common/registry/roster_form.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t
roster_head_format(const struct roster_head *h, char line[ROSTER_HEAD_MAX])
{
	char hex[2 * crypto_sign_BYTES + 1];

	sodium_bin2hex(hex, sizeof(hex), h->signature, sizeof(h->signature));
	return (size_t)snprintf(line, ROSTER_HEAD_MAX,
	    "muster-roster 1 %s %" PRId64 " %" PRId64 " %s\n", h->cluster_uuid,
	    h->revision, h->signed_at_s, hex);
}

int
roster_head_parse(const char *line, size_t len, struct roster_head *h,
    struct err *e)
{
	char copy[ROSTER_HEAD_MAX], again[ROSTER_HEAD_MAX];
	char hex[2 * crypto_sign_BYTES + 1];
	struct roster_head out;

	if (len >= sizeof(copy))
		goto bad;
	memcpy(copy, line, len);
	copy[len] = '\0';
	/* 18 digits: no overflow. */
	if (sscanf(copy,
		"muster-roster 1 %36s %18" SCNd64 " %18" SCNd64 " %128s",
		out.cluster_uuid, &out.revision, &out.signed_at_s, hex) != 4 ||
	    sodium_hex2bin(out.signature, sizeof(out.signature), hex,
		strlen(hex), NULL, NULL, NULL) == -1)
		goto bad;
	/* sscanf is lenient with spaces and signs; writing it again is not. */
	if (roster_head_format(&out, again) != len ||
	    memcmp(again, copy, len) != 0 || !uuid_valid(out.cluster_uuid) ||
	    out.revision < 0 || out.signed_at_s < 0)
		goto bad;
	*h = out;
	return 0;
bad:
	return err_set(e, ERR_CORRUPT,
	    "not a roster that this version knows, or damaged");
}

size_t
roster_message(const struct roster_head *h,
    const uint8_t body_hash[crypto_generichash_BYTES],
    uint8_t message[ROSTER_MESSAGE_MAX])
{
	int n = snprintf((char *)message, ROSTER_MESSAGE_MAX,
	    "muster-roster-1\n%s\n%" PRId64 "\n%" PRId64 "\n", h->cluster_uuid,
	    h->revision, h->signed_at_s);

	memcpy(message + n, body_hash, crypto_generichash_BYTES);
	return (size_t)n + crypto_generichash_BYTES;
}
