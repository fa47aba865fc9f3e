/* cert_ask.c: see cert_ask.h. */
#include "clusterctl/cert_ask.h"

#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/base/json.h"
#include "common/net/proto.h"

#define HEAD_MAX   65536 /* its first line */
#define ANSWER_MAX (HEAD_MAX + CUSTODY_KINDS * CUSTODY_SIZE_MAX)
#define ARGS_MAX   12

/* Where it may be, from the folder of this program. */
static const char *const places[] = { "proxyd", "../sbin/proxyd",
	"../bin/proxyd" };

static int find_proxyd(char path[PATH_MAX], struct err *);
static int start(const char *path, const struct cert_files *, pid_t *pid,
    int *fd, struct err *);
static int collect(pid_t, int fd, uint8_t *buf, size_t *size, struct err *);
static int understand(uint8_t *buf, size_t size, struct cert_answer *,
    struct err *);
static int take_facts(json_t *, struct cert_answer *, struct err *);
static int take_names(json_t *, struct cert_answer *, struct err *);
static int take_hash(json_t *, const char *field, uint8_t hash[SITE_CERT_HASH],
    struct err *);
static int take_bytes(json_t *, const char *field, uint8_t **at, size_t *left,
    struct custody_bytes *, struct err *);

int
cert_ask(const struct cert_files *files, struct cert_answer *out, struct err *e)
{
	struct cert_answer a = { .warnings = NULL };
	uint8_t *buf = xcalloc(1, ANSWER_MAX);
	char path[PATH_MAX];
	size_t size = 0;
	pid_t pid;
	int fd = -1, rv;

	if ((rv = find_proxyd(path, e)) == 0 &&
	    (rv = start(path, files, &pid, &fd, e)) == 0) {
		rv = collect(pid, fd, buf, &size, e);
		close(fd);
	}
	if (rv == 0)
		rv = understand(buf, size, &a, e);
	sodium_memzero(buf, size);
	free(buf);
	if (rv == 0)
		*out = a;
	else
		cert_answer_fini(&a);
	return rv;
}

void
cert_answer_fini(struct cert_answer *a)
{
	site_cert_fini(&a->cert);
	custody_wipe(&a->chain);
	custody_wipe(&a->key);
	custody_wipe(&a->staple);
	json_decref(a->warnings);
	a->warnings = NULL;
}

static int
find_proxyd(char path[PATH_MAX], struct err *e)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(self, '/')) == NULL)
		return err_set(e, ERR_LOCAL, "cannot tell where clusterctl is");
	*slash = '\0';
	for (size_t i = 0; i < nitems(places); i++)
		if (io_path(path, PATH_MAX, self, places[i], e) == 0 &&
		    access(path, X_OK) == 0)
			return 0;
	return err_set(e, ERR_LOCAL,
	    "certificates are checked by proxyd, which is not installed beside "
	    "clusterctl (looked in %.80s and its neighbour sbin); install it "
	    "on this machine",
	    self);
}

/* Its standard input is ours: "--key /dev/stdin" works. */
static int
start(const char *path, const struct cert_files *f, pid_t *pid, int *fd,
    struct err *e)
{
	const struct {
		const char *option, *value;
	} files[] = { { "--cert", f->cert }, { "--chain", f->chain },
		{ "--key", f->key }, { "--ocsp", f->ocsp } };
	const char *args[ARGS_MAX] = { "proxyd", "cert-check", "--emit" };
	posix_spawn_file_actions_t actions;
	size_t n = 3;
	int ends[2], rc;

	for (size_t i = 0; i < nitems(files); i++)
		if (files[i].value != NULL) {
			args[n++] = files[i].option;
			args[n++] = files[i].value;
		}
	if (pipe2(ends, O_CLOEXEC) == -1)
		return err_errno(e, ERR_LOCAL, "cannot make a pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	rc = posix_spawn(pid, path, &actions, NULL,
	    (char *const *)(uintptr_t)args, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (rc == 0) {
		*fd = ends[0];
		return 0;
	}
	close(ends[0]);
	errno = rc;
	return err_errno(e, ERR_LOCAL, "cannot run %.120s", path);
}

static int
collect(pid_t pid, int fd, uint8_t *buf, size_t *size, struct err *e)
{
	ssize_t n = io_read_n(fd, buf, ANSWER_MAX);
	int status;

	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return err_errno(e, ERR_LOCAL, "proxyd cert-check");
	*size = n > 0 ? (size_t)n : 0;
	if (n > 0 && n < ANSWER_MAX && WIFEXITED(status))
		return 0;
	return err_set(e, ERR_LOCAL,
	    "proxyd cert-check gave no answer (status %d); is it of the same "
	    "version as clusterctl?",
	    status);
}

/* A line of JSON, an err's or the facts; then the bytes. */
static int
understand(uint8_t *buf, size_t size, struct cert_answer *a, struct err *e)
{
	uint8_t *end = memchr(buf, '\n', size), *at;
	size_t left;
	json_t *o;
	int rv = -1;

	if (end == NULL)
		return err_set(e, ERR_LOCAL,
		    "proxyd cert-check gave no answer");
	at = end + 1;
	left = size - (size_t)(at - buf);
	o = json_parse_object(buf, (size_t)(end - buf), HEAD_MAX, e);
	if (o == NULL)
		return -1;
	if (json_object_get(o, "code") != NULL)
		proto_parse_error(buf, (size_t)(end - buf), e);
	else if (take_facts(o, a, e) == 0 &&
	    take_bytes(o, "chain_size", &at, &left, &a->chain, e) == 0 &&
	    take_bytes(o, "key_size", &at, &left, &a->key, e) == 0 &&
	    take_bytes(o, "staple_size", &at, &left, &a->staple, e) == 0)
		rv = 0;
	a->warnings = json_incref(json_object_get(o, "warnings"));
	json_decref(o);
	return rv;
}

static int
take_facts(json_t *o, struct cert_answer *a, struct err *e)
{
	struct site_cert *c = &a->cert;
	const char *kind, *issuer;

	if (json_get_string(o, "kind", 16, &kind, e) == -1 ||
	    site_cert_kind_parse(kind, &c->kind, e) == -1 ||
	    json_get_string(o, "issuer", SITE_CERT_ISSUER_MAX, &issuer, e) ==
		-1 ||
	    json_get_int(o, "not_before_s", INT64_MIN, INT64_MAX,
		&c->not_before_s, e) == -1 ||
	    json_get_int(o, "not_after_s", 0, INT64_MAX, &c->not_after_s, e) ==
		-1 ||
	    json_get_int(o, "staple_until_s", 0, INT64_MAX, &c->staple_until_s,
		e) == -1 ||
	    take_hash(o, "key", c->key, e) == -1 ||
	    take_hash(o, "chain", c->chain, e) == -1)
		return -1;
	snprintf(c->issuer, sizeof(c->issuer), "%s", issuer);
	if (c->not_before_s < 0)
		c->not_before_s = 0;
	c->has_staple = json_object_get(o, "staple") != NULL;
	if (c->has_staple && take_hash(o, "staple", c->staple, e) == -1)
		return -1;
	return take_names(o, a, e);
}

static int
take_names(json_t *o, struct cert_answer *a, struct err *e)
{
	json_t *names = json_object_get(o, "names"), *name; /* borrowed */
	size_t i, size = 1;
	char *p;

	json_array_foreach (names, i, name)
		size += json_string_length(name) + 1;
	a->cert.names = p = xcalloc(1, size);
	json_array_foreach (names, i, name) {
		if (!json_is_string(name))
			return err_set(e, ERR_PROTOCOL, "names are texts");
		if (i > 0)
			*p++ = ' ';
		p = stpcpy(p, json_string_value(name));
	}
	return 0;
}

static int
take_hash(json_t *o, const char *field, uint8_t hash[SITE_CERT_HASH],
    struct err *e)
{
	const char *hex;
	size_t n;

	if (json_get_string(o, field, 2 * SITE_CERT_HASH, &hex, e) == -1)
		return -1;
	if (sodium_hex2bin(hash, SITE_CERT_HASH, hex, strlen(hex), NULL, &n,
		NULL) == 0 &&
	    n == SITE_CERT_HASH)
		return 0;
	return err_set(e, ERR_PROTOCOL, "field \"%s\" is no hash", field);
}

static int
take_bytes(json_t *o, const char *field, uint8_t **at, size_t *left,
    struct custody_bytes *out, struct err *e)
{
	int64_t size;

	if (json_get_int(o, field, 0, INT32_MAX, &size, e) == -1)
		return -1;
	if (size > CUSTODY_SIZE_MAX)
		return err_set(e, ERR_USAGE,
		    "what was given is larger than %d bytes, too large for a "
		    "handshake",
		    CUSTODY_SIZE_MAX);
	if ((size_t)size > *left)
		return err_set(e, ERR_PROTOCOL,
		    "proxyd cert-check broke its answer off");
	if (size > 0) {
		out->at = xcalloc(1, (size_t)size);
		out->size = (size_t)size;
		memcpy(out->at, *at, out->size);
	}
	*at += size;
	*left -= (size_t)size;
	return 0;
}
