/*
 * fuzz_check.c: any bytes as the answers to a health check, in pieces.  The
 * first byte says which check, the second how long a piece is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd/http/proxy_header.h"
#include "proxyd/process/check.h"
#include "proxyd/process/snapshot_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(what)              \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

/* Roles with each kind of check, and one node each. */
static const struct snapshot *
world(void)
{
	static const struct {
		uint32_t kind;
		const char *text;
	} roles[] = {
		{ SNAP_CHECK_HTTP, "/" },
		{ SNAP_CHECK_MYSQL, NULL },
		{ SNAP_CHECK_MYSQL, "user" },
	};
	static struct snapshot *made;
	struct snapshot_plan *p;
	struct err e;
	int fd;

	if (made != NULL)
		return made;
	CHECK((p = plan_new(1, &e)) != NULL);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		struct plan_role role = { .name = "r",
			.check_text = roles[i].text,
			.r = { .check = roles[i].kind, .check_high = 599 } };
		struct plan_node node = { .name = "n" };
		uint32_t index;

		CHECK(plan_role(p, &role, &index, &e) == 0);
		CHECK(plan_node(p, index, &node, &e) == 0);
	}
	CHECK(plan_write(p, &fd, &e) == 0);
	plan_free(p);
	CHECK((made = snapshot_map(fd, &e)) != NULL);
	close(fd);
	return made;
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const struct proxy_header nobody = { .secure = false };
	const struct snapshot *s = world();
	struct check_say say;
	struct check *c;
	enum why why;

	if (size < 2)
		return 0;
	c = calloc(1, sizeof(*c));
	c->snap = s;
	c->role = snapshot_role(s, input[0] % s->head->n_roles);
	c->node = snapshot_node(s, 0);
	why = check_begin(c, &nobody, &say);
	for (size_t at = 2; at < size && why == WHY_NONE;) {
		size_t room = sizeof(c->heard) - c->heard_size;
		size_t n = 1 + input[1] % 64;

		CHECK(room <= sizeof(c->heard));
		if (n > room)
			n = room;
		if (n > size - at)
			n = size - at;
		if (n == 0)
			break; /* more than any answer */
		memcpy(c->heard + c->heard_size, input + at, n);
		c->heard_size += n;
		at += n;
		why = check_goes_on(c, &say);
		CHECK(say.size <= sizeof(say.bytes));
		CHECK(memchr(c->detail, '\0', sizeof(c->detail)) != NULL);
	}
	free(c);
	return 0;
}
