/*
 * test_noise.c: published vectors (the file $NOISE_VECTORS, by default
 * tests/fixtures/noise_vectors.json), and what vectors do not show.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "common/net/noise.h"

#define DEFAULT_VECTORS "tests/fixtures/noise_vectors.json"

static const char *const protocol_names[] = {
	[NOISE_IK] = "Noise_IK_25519_ChaChaPoly_SHA256",
	[NOISE_IKPSK2] = "Noise_IKpsk2_25519_ChaChaPoly_SHA256",
};

struct bytes {
	uint8_t data[NOISE_MESSAGE_MAX];
	size_t size;
};

/* Both ends of one vector; [0] is the initiator. */
struct ends {
	struct noise_handshake h[2];
	struct noise_cipher send[2], receive[2];
};

/* False when the field is absent. */
static bool
get_hex(json_t *o, const char *field, struct bytes *out)
{
	const char *hex = json_string_value(json_object_get(o, field));

	out->size = 0;
	if (hex == NULL)
		return false;
	assert_int_equal(sodium_hex2bin(out->data, sizeof(out->data), hex,
			     strlen(hex), NULL, &out->size, NULL),
	    0);
	return true;
}

static void
get_key(json_t *o, const char *field, uint8_t key[NOISE_KEY_SIZE])
{
	static struct bytes b;

	assert_true(get_hex(o, field, &b));
	assert_int_equal(b.size, NOISE_KEY_SIZE);
	memcpy(key, b.data, NOISE_KEY_SIZE);
}

/* "init_psks": [hex] or "init_psk": hex; IK has neither. */
static void
get_psk(json_t *o, const char *side, struct noise_handshake *h)
{
	json_t *list, *holder = json_object();
	char field[16];
	uint8_t psk[NOISE_KEY_SIZE];

	snprintf(field, sizeof(field), "%s_psks", side);
	list = json_object_get(o, field);
	snprintf(field, sizeof(field), "%s_psk", side);
	if (json_array_size(list) > 0)
		json_object_set(holder, field, json_array_get(list, 0));
	else
		json_object_set(holder, field, json_object_get(o, field));
	get_key(holder, field, psk);
	noise_set_psk(h, psk);
	json_decref(holder);
}

static void
start_side(json_t *v, const char *side, enum noise_pattern pattern,
    struct noise_handshake *h)
{
	static struct bytes prologue;
	struct noise_keypair s;
	uint8_t key[NOISE_KEY_SIZE];
	bool initiator = strcmp(side, "init") == 0;
	char field[24];

	snprintf(field, sizeof(field), "%s_prologue", side);
	get_hex(v, field, &prologue);
	snprintf(field, sizeof(field), "%s_static", side);
	get_key(v, field, s.secret);
	crypto_scalarmult_base(s.public, s.secret);
	if (initiator)
		get_key(v, "init_remote_static", key);
	noise_start(h, pattern, &s, initiator ? key : NULL, prologue.data,
	    prologue.size);
	snprintf(field, sizeof(field), "%s_ephemeral", side);
	get_key(v, field, key);
	noise_set_ephemeral(h, key);
	if (pattern == NOISE_IKPSK2)
		get_psk(v, side, h);
}

static void
run_handshake_message(struct ends *x, size_t i, const struct bytes *payload,
    const struct bytes *wanted)
{
	static struct bytes sent, got;
	struct err e;

	assert_int_equal(noise_write(&x->h[i], payload->data, payload->size,
			     sent.data, sizeof(sent.data), &sent.size, &e),
	    0);
	assert_int_equal(sent.size, wanted->size);
	assert_memory_equal(sent.data, wanted->data, wanted->size);
	assert_int_equal(noise_read(&x->h[!i], sent.data, sent.size, got.data,
			     &got.size, &e),
	    0);
	assert_int_equal(got.size, payload->size);
	assert_memory_equal(got.data, payload->data, payload->size);
}

static void
run_transport_message(struct ends *x, size_t i, const struct bytes *payload,
    const struct bytes *wanted)
{
	static struct bytes b;
	struct err e;

	memcpy(b.data, payload->data, payload->size);
	assert_int_equal(noise_seal(&x->send[i], b.data, payload->size, &e), 0);
	assert_int_equal(payload->size + NOISE_TAG_SIZE, wanted->size);
	assert_memory_equal(b.data, wanted->data, wanted->size);
	assert_int_equal(noise_open(&x->receive[!i], b.data, wanted->size,
			     &b.size, &e),
	    0);
	assert_int_equal(b.size, payload->size);
	assert_memory_equal(b.data, payload->data, payload->size);
}

static void
split_both(struct ends *x, json_t *v)
{
	static struct bytes hash;

	for (size_t i = 0; i < 2; i++) {
		assert_true(noise_is_done(&x->h[i]));
		noise_split(&x->h[i], &x->send[i], &x->receive[i]);
		if (!get_hex(v, "handshake_hash", &hash))
			continue;
		assert_int_equal(hash.size, NOISE_KEY_SIZE);
		assert_memory_equal(x->h[i].hash, hash.data, hash.size);
	}
}

static void
run_vector(json_t *v, enum noise_pattern pattern)
{
	static struct bytes payload, wanted;
	struct ends x;
	json_t *message;
	size_t i;

	start_side(v, "init", pattern, &x.h[0]);
	start_side(v, "resp", pattern, &x.h[1]);
	assert_true(json_array_size(json_object_get(v, "messages")) >= 2);
	json_array_foreach (json_object_get(v, "messages"), i, message) {
		assert_true(get_hex(message, "payload", &payload));
		assert_true(get_hex(message, "ciphertext", &wanted));
		if (i == 2)
			split_both(&x, v);
		if (i < 2)
			run_handshake_message(&x, i, &payload, &wanted);
		else
			run_transport_message(&x, i % 2, &payload, &wanted);
	}
	if (i == 2)
		split_both(&x, v);
}

static void
published_vectors(void **state)
{
	const char *path = getenv("NOISE_VECTORS");
	size_t ran[NOISE_N_PATTERNS] = { 0 }, i;
	json_t *file, *v;

	(void)state;
	if (path == NULL)
		path = DEFAULT_VECTORS;
	if ((file = json_load_file(path, 0, NULL)) == NULL)
		fail_msg("cannot read the vectors in %s", path);
	json_array_foreach (json_object_get(file, "vectors"), i, v) {
		json_t *field = json_object_get(v, "protocol_name");
		const char *name = json_string_value(
		    field != NULL ? field : json_object_get(v, "name"));
		size_t p = 0;

		while (p < NOISE_N_PATTERNS &&
		    (name == NULL || strcmp(name, protocol_names[p]) != 0))
			p++;
		if (p == NOISE_N_PATTERNS) {
			print_message("vector %zu: %s is not for us\n", i,
			    name == NULL ? "(no name)" : name);
			continue;
		}
		run_vector(v, (enum noise_pattern)p);
		ran[p]++;
	}
	json_decref(file);
	print_message("%s: %zu of IK, %zu of IKpsk2\n", path, ran[NOISE_IK],
	    ran[NOISE_IKPSK2]);
	assert_true(ran[NOISE_IK] > 0 && ran[NOISE_IKPSK2] > 0);
}

static void
new_keypair(struct noise_keypair *k)
{
	crypto_box_keypair(k->public, k->secret);
}

static void
start_both(struct ends *x, enum noise_pattern pattern)
{
	struct noise_keypair a, b;

	new_keypair(&a);
	new_keypair(&b);
	noise_start(&x->h[0], pattern, &a, b.public, "p", 1);
	noise_start(&x->h[1], pattern, &b, NULL, "p", 1);
}

/* Passes one message on, with the byte at `flip` changed (unless it is
 * beyond the message). */
static int
pass(struct ends *x, size_t from, size_t flip, struct err *e)
{
	uint8_t message[256], payload[256];
	size_t size, n;

	assert_int_equal(noise_write(&x->h[from], "hello", 5, message,
			     sizeof(message), &size, e),
	    0);
	if (flip < size)
		message[flip] ^= 0x40;
	return noise_read(&x->h[!from], message, size, payload, &n, e);
}

static void
any_changed_byte_is_found(void **state)
{
	uint8_t message[256];
	struct ends x;
	struct err e;
	size_t n;

	(void)state;
	for (size_t flip = 0; flip < 32 + 48 + 5 + 16; flip++) {
		start_both(&x, NOISE_IK);
		assert_int_equal(pass(&x, 0, flip, &e), -1);
		assert_int_equal(e.code, ERR_PROTOCOL);
		/* And it stays failed. */
		assert_int_equal(noise_write(&x.h[1], NULL, 0, message,
				     sizeof(message), &n, &e),
		    -1);
	}
	for (size_t flip = 0; flip < 32 + 5 + 16; flip++) {
		start_both(&x, NOISE_IKPSK2);
		assert_int_equal(pass(&x, 0, SIZE_MAX, &e), 0);
		assert_int_equal(pass(&x, 1, flip, &e), -1);
	}
}

static void
cut_messages_are_refused(void **state)
{
	uint8_t message[256], payload[256];
	struct ends x;
	struct err e;
	size_t size, n;

	(void)state;
	for (size_t cut = 0; cut < 32 + 48 + 16; cut++) {
		start_both(&x, NOISE_IK);
		noise_write(&x.h[0], NULL, 0, message, sizeof(message), &size,
		    &e);
		assert_int_equal(noise_read(&x.h[1], message, cut, payload, &n,
				     &e),
		    -1);
	}
}

static void
wrong_keys_fail(void **state)
{
	struct noise_keypair a, b, other;
	uint8_t psk[NOISE_KEY_SIZE] = { 1 };
	struct ends x;
	struct err e;

	(void)state;
	new_keypair(&a);
	new_keypair(&b);
	new_keypair(&other);
	noise_start(&x.h[0], NOISE_IK, &a, other.public, "p", 1);
	noise_start(&x.h[1], NOISE_IK, &b, NULL, "p", 1);
	assert_int_equal(pass(&x, 0, SIZE_MAX, &e), -1);

	noise_start(&x.h[0], NOISE_IK, &a, b.public, "p", 1);
	noise_start(&x.h[1], NOISE_IK, &b, NULL, "q", 1);
	assert_int_equal(pass(&x, 0, SIZE_MAX, &e), -1);

	/* The psk shows with the second message. */
	start_both(&x, NOISE_IKPSK2);
	noise_set_psk(&x.h[0], psk);
	assert_int_equal(pass(&x, 0, SIZE_MAX, &e), 0);
	assert_int_equal(pass(&x, 1, SIZE_MAX, &e), -1);
}

/* Section 12.1: keys of small order give an all-zero secret. */
static void
zero_dh_is_refused(void **state)
{
	static const uint8_t zero[NOISE_KEY_SIZE];
	uint8_t message[256] = { 0 }, payload[256];
	struct noise_keypair a;
	struct noise_handshake h;
	struct err e;
	size_t n;

	(void)state;
	new_keypair(&a);
	noise_start(&h, NOISE_IK, &a, zero, "p", 1);
	assert_int_equal(noise_write(&h, NULL, 0, message, sizeof(message), &n,
			     &e),
	    -1);
	memset(message, 0, sizeof(message));
	noise_start(&h, NOISE_IK, &a, NULL, "p", 1);
	assert_int_equal(noise_read(&h, message, 96, payload, &n, &e), -1);
}

static void
turns_are_kept(void **state)
{
	uint8_t message[256], payload[256];
	struct ends x;
	struct err e;
	size_t n;

	(void)state;
	start_both(&x, NOISE_IK);
	assert_int_equal(noise_write(&x.h[1], NULL, 0, message, sizeof(message),
			     &n, &e),
	    -1);
	assert_int_equal(noise_read(&x.h[0], message, 96, payload, &n, &e), -1);
	start_both(&x, NOISE_IK);
	assert_int_equal(noise_write(&x.h[0], NULL, 0, message, 95, &n, &e),
	    -1);
}

static void
secrets_are_wiped_by_the_split(void **state)
{
	struct noise_handshake wiped;
	uint8_t hash[NOISE_KEY_SIZE];
	struct ends x;
	struct err e;

	(void)state;
	start_both(&x, NOISE_IK);
	assert_int_equal(pass(&x, 0, SIZE_MAX, &e), 0);
	assert_int_equal(pass(&x, 1, SIZE_MAX, &e), 0);
	memcpy(hash, x.h[0].hash, sizeof(hash));
	noise_split(&x.h[0], &x.send[0], &x.receive[0]);
	noise_wipe(&wiped);
	memcpy(wiped.hash, hash, sizeof(hash));
	assert_memory_equal(x.h[0].s.secret, wiped.s.secret,
	    sizeof(wiped.s.secret));
	assert_memory_equal(x.h[0].e.secret, wiped.e.secret,
	    sizeof(wiped.e.secret));
	assert_memory_equal(x.h[0].ck, wiped.ck, sizeof(wiped.ck));
	assert_memory_equal(x.h[0].hash, hash, sizeof(hash));
}

static void
transport_refuses_tampering_replay_and_reorder(void **state)
{
	struct noise_cipher send = { .nonce = 0 }, receive;
	uint8_t first[32] = "first", second[32] = "second", copy[32];
	struct err e;
	size_t n;

	(void)state;
	randombytes_buf(send.key, sizeof(send.key));
	receive = send;
	noise_seal(&send, first, 6, &e);
	noise_seal(&send, second, 7, &e);
	memcpy(copy, second, sizeof(copy));
	assert_int_equal(noise_open(&receive, copy, 7 + 16, &n, &e), -1);
	receive.nonce = 0;
	memcpy(copy, first, sizeof(copy));
	assert_int_equal(noise_open(&receive, copy, 6 + 16, &n, &e), 0);
	assert_string_equal((char *)copy, "first");
	memcpy(copy, first, sizeof(copy));
	assert_int_equal(noise_open(&receive, copy, 6 + 16, &n, &e), -1);
	assert_int_equal(noise_open(&receive, copy, 15, &n, &e), -1);

	send.nonce = UINT64_MAX;
	assert_int_equal(noise_seal(&send, first, 6, &e), -1);
	assert_int_equal(noise_seal(&receive, first,
			     NOISE_MESSAGE_MAX - NOISE_TAG_SIZE + 1, &e),
	    -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(any_changed_byte_is_found),
		cmocka_unit_test(cut_messages_are_refused),
		cmocka_unit_test(wrong_keys_fail),
		cmocka_unit_test(zero_dh_is_refused),
		cmocka_unit_test(turns_are_kept),
		cmocka_unit_test(secrets_are_wiped_by_the_split),
		cmocka_unit_test(
		    transport_refuses_tampering_replay_and_reorder),
	};

	if (sodium_init() == -1)
		return 1;
	return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
