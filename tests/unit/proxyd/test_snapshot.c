/* test_snapshot.c: the image: what is put in is found again. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/process/snapshot_plan.h"

static struct snapshot *
written(struct snapshot_plan *p)
{
	struct snapshot *s;
	struct err e;
	int fd;

	assert_int_equal(plan_write(p, &fd, &e), 0);
	plan_free(p);
	s = snapshot_map(fd, &e);
	assert_non_null(s);
	close(fd);
	return s;
}

static uint32_t
site(struct snapshot_plan *p, const char *name, const char *alias)
{
	struct plan_site s = { .name = name, .owner = "o" };
	struct err e;
	uint32_t i;

	s.s.role = SNAP_NONE;
	assert_int_equal(plan_site(p, &s, &i, &e), 0);
	assert_int_equal(plan_host(p, i, name, &e), 0);
	if (alias != NULL)
		assert_int_equal(plan_host(p, i, alias, &e), 0);
	return i;
}

static void
hosts_are_found(void **state)
{
	static const struct {
		const char *host, *site;
	} cases[] = {
		{ "example.com", "example.com" },
		{ "www.example.com", "example.com" },
		{ "shop.example.com", "shop.example.com" },
		{ "x.shop.example.com", "example.com" },
		{ "x.deep.example.com", "deep.example.com" },
		{ "a.b.deep.example.com", "deep.example.com" },
		{ "deep.example.com", "deep.example.com" },
		{ "com", NULL },
		{ "xexample.com", NULL },
		{ ".example.com", NULL },
		{ "", NULL },
		{ "example.com.", NULL },
		{ "*.example.com", "example.com" },
	};
	struct err e;
	struct snapshot_plan *p = plan_new(7, &e);
	struct snapshot *s;

	(void)state;
	site(p, "example.com", "*.example.com");
	site(p, "shop.example.com", NULL);
	site(p, "deep.example.com", "*.deep.example.com");
	s = written(p);
	assert_int_equal(s->head->revision, 7);
	assert_null(snapshot_default_site(s));
	for (size_t i = 0; i < nitems(cases); i++) {
		const struct snap_site *found =
		    snapshot_find(s, cases[i].host, strlen(cases[i].host));

		if (cases[i].site == NULL)
			assert_null(found);
		else
			assert_string_equal(snapshot_text(s, found->name),
			    cases[i].site);
	}
	snapshot_release(s);
}

static void
longest_hosts(void **state)
{
	char host[300];
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *s;

	(void)state;
	site(p, "a.a", "*.a.a");
	s = written(p);
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = i % 2 ? '.' : 'a';
	assert_non_null(snapshot_find(s, host, 253));
	assert_null(snapshot_find(s, host, 255));
	memset(host, '.', sizeof(host));
	assert_null(snapshot_find(s, host, 253));
	snapshot_release(s);
}

static void
many_sites(void **state)
{
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *s;
	char name[64];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "site%d.example.net", i);
		site(p, name, NULL);
	}
	plan_default_site(p, 5);
	s = written(p);
	for (int i = 0; i < 20000; i += 7) {
		snprintf(name, sizeof(name), "site%d.example.net", i);
		assert_string_equal(snapshot_text(s,
					snapshot_find(s, name, strlen(name))
					    ->name),
		    name);
	}
	assert_string_equal(snapshot_text(s, snapshot_default_site(s)->name),
	    "site5.example.net");
	assert_null(snapshot_find(s, "site20000.example.net", 21));
	snapshot_release(s);
}

static void
roles_have_their_nodes(void **state)
{
	static const char *const names[] = { "n1", "n2", "n3", "n4" };
	struct plan_role role = { .name = "worker_http", .cookie = "SID" };
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *s;
	struct cidr c;
	struct addr a;
	uint32_t r[2];

	(void)state;
	assert_int_equal(plan_role(p, &role, &r[0], &e), 0);
	role.name = "worker_api";
	assert_int_equal(plan_role(p, &role, &r[1], &e), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct plan_node n = { .name = names[i] };

		n.n.weight = i;
		assert_int_equal(plan_node(p, r[i % 2], &n, &e), 0);
	}
	assert_int_equal(cidr_parse("127.0.0.0/8", &c, &e), 0);
	assert_int_equal(plan_peer(p, PLAN_TRUSTED, &c, &e), 0);
	s = written(p);
	for (uint32_t i = 0; i < 2; i++) {
		const struct snap_role *found = snapshot_role(s, r[i]);

		assert_int_equal(found->n_nodes, 2);
		assert_string_equal(snapshot_text(s, found->cookie), "SID");
		for (uint32_t n = 0; n < 2; n++) {
			const struct snap_node *node =
			    snapshot_node(s, found->first_node + n);

			assert_int_equal(node->weight, n * 2 + i);
			assert_string_equal(snapshot_text(s, node->name),
			    names[n * 2 + i]);
		}
	}
	assert_string_equal(snapshot_text(s, s->head->settings.via), "muster");
	assert_int_equal(addr_parse("127.9.9.9", 0, &a, &e), 0);
	assert_true(snapshot_trusts(s, &a));
	assert_int_equal(addr_parse("10.0.0.1", 0, &a, &e), 0);
	assert_false(snapshot_trusts(s, &a));
	snapshot_release(s);
}

static void
damaged_images_are_refused(void **state)
{
	struct err e;
	struct snapshot_plan *p = plan_new(1, &e);
	struct snapshot *s;
	struct snap_head h;
	FILE *f;

	(void)state;
	s = written(p);
	h = *s->head;
	snapshot_release(s);
	for (int damage = 0; damage < 4; damage++) {
		struct snap_head bad = h;

		switch (damage) {
		case 0:
			bad.magic[0] = 'X';
			break;
		case 1:
			bad.version++;
			break;
		case 2:
			bad.n_sites = UINT32_MAX;
			break;
		case 3:
			break; /* only the head: too short for its size */
		}
		f = tmpfile();
		fwrite(&bad, sizeof(bad), 1, f);
		fflush(f);
		assert_null(snapshot_map(fileno(f), &e));
		assert_int_equal(e.code, ERR_CORRUPT);
		fclose(f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_found),
		cmocka_unit_test(longest_hosts),
		cmocka_unit_test(many_sites),
		cmocka_unit_test(roles_have_their_nodes),
		cmocka_unit_test(damaged_images_are_refused),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
