/* ticket_keys.c: see ticket_keys.h. */
#include "proxyd/tls/ticket_keys.h"

#include <sodium.h>
#include <string.h>

#define KEY_HEX (2 * sizeof(struct ticket_key))

_Static_assert(sizeof(struct ticket_key) ==
	TICKET_KEY_NAME + 2 * TICKET_KEY_SECRET,
    "a key is its bytes");

void
ticket_keys_rotate(struct ticket_keys *k)
{
	memmove(&k->key[1], &k->key[0], sizeof(k->key) - sizeof(k->key[0]));
	randombytes_buf(&k->key[0], sizeof(k->key[0]));
	if (k->n < TICKET_KEYS)
		k->n++;
}

const struct ticket_key *
ticket_keys_find(const struct ticket_keys *k,
    const uint8_t name[TICKET_KEY_NAME])
{
	for (unsigned i = 0; i < k->n; i++)
		if (memcmp(k->key[i].name, name, TICKET_KEY_NAME) == 0)
			return &k->key[i];
	return NULL;
}

void
ticket_keys_to_text(const struct ticket_keys *k, char text[TICKET_KEYS_TEXT])
{
	char *at = text;

	*at = '\0';
	for (unsigned i = 0; i < k->n; i++) {
		if (i > 0)
			*at++ = ' ';
		sodium_bin2hex(at, KEY_HEX + 1, (const uint8_t *)&k->key[i],
		    sizeof(k->key[i]));
		at += KEY_HEX;
	}
}

static int
take_key(struct ticket_keys *k, const char *hex, size_t len)
{
	struct ticket_key *key = &k->key[k->n];
	size_t got;

	if (k->n == TICKET_KEYS || len != KEY_HEX ||
	    sodium_hex2bin((uint8_t *)key, sizeof(*key), hex, len, NULL, &got,
		NULL) != 0 ||
	    got != sizeof(*key))
		return -1;
	k->n++;
	return 0;
}

int
ticket_keys_from_text(struct ticket_keys *k, const char *text, struct err *e)
{
	struct ticket_keys out = { .n = 0 };
	int rv = 0;

	for (const char *p = text; rv == 0 && *p != '\0';) {
		size_t len = strcspn(p, " ");

		rv = take_key(&out, p, len);
		p += len + (p[len] == ' ');
	}
	if (rv == -1 || out.n == 0)
		rv = err_set(e, ERR_PROTOCOL, "ticket keys are damaged");
	else
		*k = out;
	ticket_keys_wipe(&out);
	return rv;
}

void
ticket_keys_wipe(struct ticket_keys *k)
{
	sodium_memzero(k, sizeof(*k));
}
