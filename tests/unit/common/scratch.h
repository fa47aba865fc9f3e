/*
 * scratch.h: a private directory for a test, with a registry in it that has
 * one master.  Each test gets a fresh one: cmocka_unit_test_setup_teardown(x,
 * scratch_setup, scratch_teardown), and *state is the struct scratch.
 */
#ifndef MUSTER_TEST_SCRATCH_H
#define MUSTER_TEST_SCRATCH_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/err.h"
#include "common/registry/certs.h"
#include "common/registry/nodes.h"
#include "common/registry/registry.h"
#include "common/registry/sites.h"

struct scratch {
	char dir[64];
	char db[96]; /* the registry's path */
	struct registry *r;
	struct err e;
};

/* The failed call's sentence is what a person needs to see. */
#define assert_ok(s, call)                                      \
	do {                                                    \
		(s)->e.text[0] = '\0';                          \
		if ((call) != 0)                                \
			fail_msg("%s: %s", #call, (s)->e.text); \
	} while (0)

#define assert_refused(s, call, code_, part)                                 \
	do {                                                                 \
		assert_int_equal((call), -1);                                \
		assert_int_equal((s)->e.code, (code_));                      \
		if (strstr((s)->e.text, (part)) == NULL)                     \
			fail_msg("'%s' is not in: %s", (part), (s)->e.text); \
	} while (0)

static inline const char *
scratch_path(const struct scratch *s, const char *file, char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "%s/%s", s->dir, file);
	return buf;
}

static inline int
scratch_add_node(struct scratch *s, const char *name, const char *addr,
    const char *role)
{
	struct node n;

	node_init(&n, name);
	snprintf(n.addr, sizeof(n.addr), "%s", addr);
	n.n_roles = 1;
	snprintf(n.roles[0].name, sizeof(n.roles[0].name), "%s", role);
	return nodes_add(s->r, &n, &s->e);
}

static inline int64_t
scratch_revision(struct scratch *s)
{
	int64_t revision = -1;

	assert_ok(s, registry_revision(s->r, &revision, &s->e));
	return revision;
}

static inline void
scratch_print(const char *sentence, void *arg)
{
	(void)arg;
	print_error("%s\n", sentence);
}

static inline void
scratch_assert_sound(struct scratch *s)
{
	size_t n = 99;

	assert_ok(s, registry_check(s->r, scratch_print, NULL, &n, &s->e));
	assert_int_equal(n, 0);
}

static inline int
scratch_count_one(const struct site *site, void *n)
{
	(void)site;
	++*(int64_t *)n;
	return 0;
}

static inline int64_t
scratch_count_sites(struct scratch *s)
{
	int64_t n = 0;

	assert_ok(s, sites_each(s->r, scratch_count_one, &n, &s->e));
	return n;
}

struct scratch_serial {
	uint64_t serial;
	bool found;
};

static inline int
scratch_match_serial(uint64_t serial, int64_t not_after_s, void *arg)
{
	struct scratch_serial *s = arg;

	(void)not_after_s;
	return s->found = serial == s->serial;
}

/* Whether a serial is on the list of the revoked, early in 1970. */
static inline bool
scratch_is_revoked(struct scratch *s, uint64_t serial)
{
	struct scratch_serial match = { .serial = serial };

	if (certs_revoked(s->r, 0, scratch_match_serial, &match, &s->e) == -1)
		fail_msg("%s", s->e.text);
	return match.found;
}

static inline int
scratch_setup(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_return_code(sodium_init(), 0);
	snprintf(s->dir, sizeof(s->dir), "/tmp/muster-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->db, sizeof(s->db), "%s/registry.db", s->dir);
	s->r = registry_create(s->db, "test", &s->e);
	if (s->r == NULL)
		fail_msg("%s", s->e.text);
	assert_ok(s, scratch_add_node(s, "m1", "10.0.0.1", "master"));
	*state = s;
	return 0;
}

static inline int
scratch_remove_one(const char *path, const struct stat *sb, int type,
    struct FTW *ftw)
{
	(void)sb;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int
scratch_teardown(void **state)
{
	struct scratch *s = *state;

	registry_close(s->r);
	nftw(s->dir, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

#define scratch_test(test) \
	cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

#endif
