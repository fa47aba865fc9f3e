/* audit_verify.c: reading and checking a log; see audit.h. */
#include "common/audit/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/audit/audit_line.h"

/* What does not chain, until a line accounts for it as torn. */
struct torn {
	uint64_t line; /* its first; 0: none */
	size_t size;
	crypto_generichash_state hash;
};

struct chain {
	struct audit_report *out;
	uint64_t line, seq;
	char hash[AUDIT_HASH_HEX + 1];
	struct torn torn;
};

static int check_lines(struct audit_reader *, struct chain *);
static bool check_line(struct chain *, const char *line, size_t len,
    bool whole);
static void add_torn(struct chain *, const char *line, size_t len, bool whole);
static bool accounts_for(struct torn *, const json_t *);
static bool bad(struct chain *, uint64_t line, const char *why);

int
audit_verify(const char *path, struct audit_report *report, struct err *e)
{
	struct audit_report out = { .n_lines = 0 };
	struct audit_reader in = { .fd = audit_open(path, false, e) };
	struct chain c = { .out = &out };
	int rv = 0;

	if (in.fd == -1)
		return -1;
	memcpy(c.hash, audit_no_hash, sizeof(c.hash));
	if (in.fd >= 0)
		rv = check_lines(&in, &c);
	if (rv == -1)
		err_errno(e, ERR_LOCAL, "cannot read audit log %s", path);
	if (in.fd >= 0)
		close(in.fd);
	memcpy(out.head_hex, c.hash, sizeof(out.head_hex));
	if (rv == 0)
		*report = out;
	return rv;
}

int
audit_each(const char *path, uint64_t first,
    int (*fn)(uint64_t line, const json_t *event, void *arg), void *arg,
    struct err *e)
{
	struct audit_reader in = { .fd = audit_open(path, false, e) };
	uint64_t n = 0, seq;
	const char *line, *prev;
	bool whole = true, was_whole;
	size_t len;
	int more, rv = 0;

	if (in.fd < 0)
		return in.fd == -2 ? 0 : -1;
	for (;;) {
		json_t *o = NULL;

		was_whole = whole;
		if ((more = audit_next(&in, &line, &len, &whole)) != 1)
			break;
		n += was_whole;
		if (n >= first && was_whole)
			o = audit_parse(line, len, &seq, &prev);
		rv = o != NULL ? fn(n, o, arg) : 0;
		json_decref(o);
		if (rv != 0)
			break;
	}
	if (more == -1)
		rv = err_errno(e, ERR_LOCAL, "cannot read audit log %s", path);
	close(in.fd);
	return rv;
}

static int
check_lines(struct audit_reader *in, struct chain *c)
{
	const char *line;
	size_t len;
	bool whole = true;
	int rv;

	/* A piece of an endless line does not count as one. */
	for (bool was_whole = true;; was_whole = whole) {
		if ((rv = audit_next(in, &line, &len, &whole)) != 1)
			break;
		c->line += was_whole;
		if (!check_line(c, line, len, whole))
			return 0;
	}
	if (rv == -1)
		return -1;
	/* An append that died left no newline; a line that has one and is
	 * none was written by somebody else. */
	if (c->torn.line != 0 && whole)
		bad(c, c->torn.line, "it is not a line of an audit log");
	else
		c->out->torn_tail = c->torn.line != 0;
	return 0;
}

static bool
check_line(struct chain *c, const char *line, size_t len, bool whole)
{
	const char *prev;
	json_t *o;
	uint64_t seq;
	bool sound;

	/* A line that lacks nothing but its newline is one. */
	if ((o = audit_parse(line, len, &seq, &prev)) == NULL) {
		add_torn(c, line, len, whole);
		return true;
	}
	if (strcmp(prev, c->hash) != 0)
		sound = bad(c, c->torn.line != 0 ? c->torn.line : c->line,
		    "the line before it was changed, removed or inserted");
	else if (seq != c->seq + 1)
		sound = bad(c, c->line, "its sequence number does not follow");
	else if (c->torn.line != 0 && !accounts_for(&c->torn, o))
		sound = bad(c, c->torn.line,
		    "it is damaged, and no later line accounts for it");
	else
		sound = true;
	json_decref(o);
	if (!sound)
		return false;
	if (c->torn.line != 0)
		c->out->n_healed++;
	c->torn.line = 0;
	c->seq = seq;
	c->out->n_lines++;
	audit_hash(line, len, c->hash);
	return true;
}

static void
add_torn(struct chain *c, const char *line, size_t len, bool whole)
{
	struct torn *t = &c->torn;

	if (t->line == 0) {
		t->line = c->line;
		t->size = 0;
		crypto_generichash_init(&t->hash, NULL, 0,
		    crypto_generichash_BYTES);
	}
	crypto_generichash_update(&t->hash, (const uint8_t *)line, len);
	t->size += len;
	if (whole) {
		crypto_generichash_update(&t->hash, (const uint8_t *)"\n", 1);
		t->size++;
	}
}

static bool
accounts_for(struct torn *t, const json_t *o)
{
	const char *told = json_string_value(json_object_get(o, "torn_hash"));
	json_int_t size = json_integer_value(json_object_get(o, "torn_size"));
	uint8_t hash[crypto_generichash_BYTES];
	char hex[AUDIT_HASH_HEX + 1];

	crypto_generichash_final(&t->hash, hash, sizeof(hash));
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	return told != NULL && strcmp(told, hex) == 0 && size >= 0 &&
	    (size_t)size == t->size;
}

static bool
bad(struct chain *c, uint64_t line, const char *why)
{
	c->out->bad_line = line;
	snprintf(c->out->why, sizeof(c->out->why), "%s", why);
	return false;
}
