/* cert_check_run.c: the command `proxyd cert-check`; see cert_check.h. */
#include "proxyd/tls/cert_check.h"

#include <sys/stat.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/proto.h"

/* The four files, while they are looked at. */
struct brought {
	struct cert_check_input in;
	char *buf[4];
	mode_t key_mode; /* 0: not a plain file */
};

static int load(const struct cert_check_paths *, struct brought *,
    struct err *);
static int load_file(const char *path, char **buf, struct cert_check_file *,
    struct err *);
static void look_at_key(const char *path, struct brought *);
static void warn_of_key(const struct brought *, struct cert_checked *);
static void forget(struct brought *);
static int say(const struct cert_checked *, bool emit, struct err *);
static json_t *describe(const struct cert_checked *);
static json_t *name_list(const char *names);
static json_t *hash_text(const uint8_t hash[CERT_CHECK_HASH]);

int
cert_check_run(const struct cert_check_paths *paths, struct err *e)
{
	struct cert_checked checked = { .names = NULL };
	char text[PROTO_ERROR_MAX];
	struct brought b = { 0 };
	int rv = load(paths, &b, e);

	if (rv == 0 && (rv = cert_check(&b.in, &checked, e)) == 0)
		warn_of_key(&b, &checked);
	forget(&b);
	if (rv == 0)
		rv = say(&checked, paths->emit, e);
	cert_checked_fini(&checked);
	if (rv == 0 || !paths->emit)
		return rv;
	printf("%.*s\n", (int)proto_format_error(e, text), text);
	return err_exit_status(e->code);
}

static int
load(const struct cert_check_paths *p, struct brought *b, struct err *e)
{
	b->in.now_s = clock_wall_ms() / 1000;
	if (p->cert == NULL)
		return err_set(e, ERR_USAGE,
		    "cert-check: which certificate? (--cert FILE)");
	if (load_file(p->cert, &b->buf[0], &b->in.cert, e) == -1 ||
	    load_file(p->chain, &b->buf[1], &b->in.chain, e) == -1 ||
	    load_file(p->key, &b->buf[2], &b->in.key, e) == -1 ||
	    load_file(p->ocsp, &b->buf[3], &b->in.ocsp, e) == -1)
		return -1;
	if (p->key != NULL)
		look_at_key(p->key, b);
	return 0;
}

static void
look_at_key(const char *path, struct brought *b)
{
	struct stat sb;

	if (stat(path, &sb) == 0 && S_ISREG(sb.st_mode))
		b->key_mode = sb.st_mode & 07777;
}

static void
warn_of_key(const struct brought *b, struct cert_checked *c)
{
	if ((b->key_mode & 0007) != 0)
		json_array_append_new(c->warnings,
		    json_sprintf("others can read %s (mode %04o); chmod 600 "
				 "it, or remove it",
			b->in.key.name, (unsigned)b->key_mode));
}

/* Any file, also a pipe that a shell made. */
static int
load_file(const char *path, char **buf, struct cert_check_file *f,
    struct err *e)
{
	ssize_t n;
	int fd;

	if (path == NULL)
		return 0;
	if ((*buf = calloc(1, CERT_CHECK_FILE_MAX + 1)) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1)
		return err_errno(e, ERR_LOCAL, "cannot open %.120s", path);
	n = io_read_n(fd, *buf, CERT_CHECK_FILE_MAX + 1);
	close(fd);
	if (n == -1)
		return err_errno(e, ERR_LOCAL, "cannot read %.120s", path);
	if (n > (ssize_t)CERT_CHECK_FILE_MAX)
		return err_set(e, ERR_USAGE, "%.120s is larger than %u bytes",
		    path, CERT_CHECK_FILE_MAX);
	*f = (struct cert_check_file){ path, (uint8_t *)*buf, (size_t)n };
	return 0;
}

static void
forget(struct brought *b)
{
	for (size_t i = 0; i < nitems(b->buf); i++) {
		if (b->buf[i] != NULL)
			sodium_memzero(b->buf[i], CERT_CHECK_FILE_MAX);
		free(b->buf[i]);
	}
}

static int
say(const struct cert_checked *c, bool emit, struct err *e)
{
	json_t *o = describe(c);
	int bad = o == NULL ||
	    json_dumpf(o, stdout, JSON_COMPACT | JSON_SORT_KEYS) == -1 ||
	    putchar('\n') == EOF || fflush(stdout) == EOF;

	json_decref(o);
	/* Not through stdio, which would keep a copy of the key. */
	if (!bad && emit)
		bad =
		    io_write_n(STDOUT_FILENO, c->chain, c->chain_size) == -1 ||
		    (c->key_size > 0 &&
			io_write_n(STDOUT_FILENO, c->key, c->key_size) == -1) ||
		    (c->ocsp_size > 0 &&
			io_write_n(STDOUT_FILENO, c->ocsp, c->ocsp_size) == -1);
	return bad ? err_errno(e, ERR_LOCAL, "cannot write the answer") : 0;
}

static json_t *
describe(const struct cert_checked *c)
{
	uint8_t chain[crypto_hash_sha256_BYTES], staple[sizeof(chain)];

	crypto_hash_sha256(chain, c->chain, c->chain_size);
	crypto_hash_sha256(staple, c->ocsp, c->ocsp_size);
	return json_pack("{s:s s:i s:s s:s s:o s:i s:b s:I s:I s:I "
			 "s:o s:o s:o* s:i s:i s:i s:O}",
	    "kind", c->kind == CERT_IMAGE_RSA ? "rsa" : "ecdsa", "bits",
	    c->bits, "subject", c->subject, "issuer", c->issuer, "names",
	    name_list(c->names), "certificates", c->n_chain, "self_signed",
	    c->self_signed, "not_before_s", (json_int_t)c->not_before_s,
	    "not_after_s", (json_int_t)c->not_after_s, "staple_until_s",
	    (json_int_t)c->ocsp_until_s, "key", hash_text(c->spki), "chain",
	    hash_text(chain), "staple",
	    c->ocsp_size > 0 ? hash_text(staple) : NULL, "chain_size",
	    (int)c->chain_size, "key_size", (int)c->key_size, "staple_size",
	    (int)c->ocsp_size, "warnings", c->warnings);
}

static json_t *
name_list(const char *names)
{
	json_t *list = json_array();
	size_t n;

	for (const char *p = names; *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		json_array_append_new(list, json_stringn(p, n));
	}
	return list;
}

static json_t *
hash_text(const uint8_t hash[CERT_CHECK_HASH])
{
	char hex[2 * CERT_CHECK_HASH + 1];

	return json_string(
	    sodium_bin2hex(hex, sizeof(hex), hash, CERT_CHECK_HASH));
}
