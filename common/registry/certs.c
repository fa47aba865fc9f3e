/* certs.c: see certs.h. */
#include "common/registry/certs.h"

#include <stdio.h>
#include <string.h>

#include "common/registry/db.h"

/* What differs between nodes and operators: one row each. */
static const struct {
	const char *word, *find, *set_key, *issue;
} holders[] = {
	[HOLDER_NODE] = {
	    "node",
	    "SELECT key FROM nodes WHERE name = ?",
	    "UPDATE nodes SET key = ? WHERE name = ?",
	    "INSERT INTO certs (serial, node_id, not_after_s) "
	    "SELECT next_serial, (SELECT id FROM nodes WHERE name = ?), ? "
	    "FROM cluster",
	},
	[HOLDER_OPERATOR] = {
	    "operator",
	    "SELECT key FROM operators WHERE name = ?",
	    "UPDATE operators SET key = ? WHERE name = ?",
	    "INSERT INTO certs (serial, operator_id, not_after_s) "
	    "SELECT next_serial, (SELECT id FROM operators WHERE name = ?), "
	    "? FROM cluster",
	},
};

static int claim_key(struct registry *, enum cert_holder, const char *name,
    const uint8_t *key, struct err *);
static int next_serial(struct registry *, uint64_t *serial, struct err *);

int
certs_issue(struct registry *r, enum cert_holder holder, const char *name,
    const uint8_t key[KEY_SIZE], int64_t not_after_s, uint64_t *serial,
    struct err *e)
{
	uint64_t out = 0;
	int rv;

	if (registry_begin(r, e, "issue a certificate to %s %s",
		holders[holder].word, name) == -1)
		return -1;
	rv = claim_key(r, holder, name, key, e);
	if (rv == 0)
		rv = db_run(r, e, holders[holder].issue, TEXT(name),
		    INT(not_after_s));
	if (rv == 0)
		rv = next_serial(r, &out, e);
	if (registry_end(r, rv, e) == -1)
		return -1;
	*serial = out;
	return 0;
}

int
certs_revoked(struct registry *r, int64_t now_s,
    int (*fn)(uint64_t serial, int64_t not_after_s, void *arg), void *arg,
    struct err *e)
{
	static const char sql[] =
	    "SELECT serial, not_after_s FROM certs WHERE revoked_ms IS NOT "
	    "NULL AND not_after_s >= ? ORDER BY serial";
	struct rows q;
	int rv;

	if (rows_open(&q, r, e, sql, INT(now_s)) == -1)
		return -1;
	while ((rv = rows_next(&q, e)) == 1) {
		uint64_t serial = (uint64_t)row_int(&q);

		if ((rv = fn(serial, row_int(&q), arg)) != 0)
			break;
	}
	rows_close(&q);
	return rv;
}

/* The holder's key is set by its first certificate, and stays. */
static int
claim_key(struct registry *r, enum cert_holder holder, const char *name,
    const uint8_t *key, struct err *e)
{
	uint8_t present[KEY_SIZE];
	struct rows q;
	bool has_key;
	int rv;

	if (rows_open(&q, r, e, holders[holder].find, TEXT(name)) == -1)
		return -1;
	if ((rv = rows_next(&q, e)) != 1)
		return rv == 0 ? err_set(e, ERR_NO_TARGET, "no such %s '%.64s'",
				     holders[holder].word, name) :
				 -1;
	has_key = row_blob(&q, present, sizeof(present));
	rows_close(&q);
	if (!has_key)
		return db_run(r, e, holders[holder].set_key,
		    BLOB(key, KEY_SIZE), TEXT(name));
	if (memcmp(present, key, KEY_SIZE) != 0)
		return err_set(e, ERR_CONFLICT,
		    "%s %s has another key; remove it first, or join under "
		    "another name",
		    holders[holder].word, name);
	return 0;
}

static int
next_serial(struct registry *r, uint64_t *serial, struct err *e)
{
	static const char bump[] =
	    "UPDATE cluster SET next_serial = next_serial + 1";
	static const char sql[] = "SELECT next_serial - 1 FROM cluster";
	int64_t issued;

	if (db_run(r, e, bump) == -1 || db_int(r, e, &issued, sql) != 1)
		return -1;
	*serial = (uint64_t)issued;
	return 0;
}
