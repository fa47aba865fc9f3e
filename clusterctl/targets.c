/* targets.c: see targets.h. */
#include "clusterctl/targets.h"

#include <stdlib.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"

static int take_n(void *, struct opt_word *, struct err *);
static int check_n(const struct context *, const struct target_opts *,
    struct err *);
static int add_groups(const struct context *, const struct target_opts *,
    struct nodeset *, struct err *);
static int combine_text(const struct context *, const char *text,
    enum nodeset_op, struct nodeset *, struct err *);
static int add_sets(const struct context *, const struct target_opts *,
    const char *set, struct nodeset *, struct err *);
static bool selects(const struct target_opts *, const struct dir_node *);
static int list_nodes(const struct context *, struct targets *, struct err *);
static void tell_left_out(const struct nodeset *, const char *why);
static int refuse_empty(const struct target_opts *, struct err *);

const struct opt target_rows[N_TARGET_ROWS] = {
	{ .name = "role",
	    .letter = 'r',
	    .type = OPT_LIST,
	    .arg = "ROLE",
	    .offset = offsetof(struct target_opts, roles),
	    .help = "nodes with this role" },
	{ .name = "nodes",
	    .type = OPT_LIST,
	    .arg = "SET",
	    .offset = offsetof(struct target_opts, sets),
	    .help = "these nodes, e.g. web[01-20,33],@storage!web07" },
	{ .name = "all",
	    .letter = 'a',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct target_opts, all),
	    .help = "every node" },
	{ .name = "exclude",
	    .letter = 'x',
	    .type = OPT_LIST,
	    .arg = "SET",
	    .offset = offsetof(struct target_opts, excluded),
	    .help = "but not these" },
	{ .name = "even-maintenance",
	    .letter = 'A',
	    .type = OPT_FLAG,
	    .offset = offsetof(struct target_opts, even_maintenance),
	    .help = "with -r, -a: also nodes in maintenance; alone: every "
		    "node" },
	{ .name = "no-stdin",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct target_opts, no_stdin),
	    .help = "close standard input there, read nothing here" },
	{ .letter = 'n',
	    .type = OPT_HOOK,
	    .arg = "SET",
	    .hook = take_n,
	    .help = "--nodes SET; once targets are given: --no-stdin" },
};

bool
targets_given(const struct target_opts *o)
{
	return o->roles.n > 0 || o->sets.n > 0 || o->all || o->even_maintenance;
}

int
targets_resolve(struct context *cx, const struct target_opts *o,
    const char *set, struct targets *t, struct err *e)
{
	memset(t, 0, sizeof(*t));
	if (check_n(cx, o, e) == -1)
		return -1;
	if ((t->set = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (add_groups(cx, o, t->set, e) == -1 ||
	    add_sets(cx, o, set, t->set, e) == -1)
		goto fail;
	for (size_t i = 0; i < o->excluded.n; i++)
		if (combine_text(cx, o->excluded.v[i], NODESET_DIFFERENCE,
			t->set, e) == -1) {
			err_wrap(e, "-x %.60s", o->excluded.v[i]);
			goto fail;
		}
	if (nodeset_count(t->set) == 0) {
		refuse_empty(o, e);
		goto fail;
	}
	if (list_nodes(cx, t, e) == 0)
		return 0;
fail:
	targets_fini(t);
	return -1;
}

void
targets_fini(struct targets *t)
{
	free(t->nodes);
	free(t->folded);
	nodeset_free(t->set);
	memset(t, 0, sizeof(*t));
}

/*
 * -n names a set as long as no target is known, and closes standard input
 * once one is, as ssh has it.  What follows is kept, to refuse the line in
 * which it looks like a target all the same.
 */
static int
take_n(void *into, struct opt_word *w, struct err *e)
{
	struct target_opts *o = into;

	if (targets_given(o) || w->n_args > 0) {
		o->no_stdin = true;
		if (!w->attached) /* -nq is a bundle of flags */
			o->behind_n = w->value;
		return 0;
	}
	if (w->value == NULL)
		return err_set(e, ERR_USAGE, "-n needs a value: SET");
	w->used = true;
	if (o->sets.n == nitems(o->sets.v))
		return err_set(e, ERR_USAGE, "-n given too often");
	o->sets.v[o->sets.n++] = w->value;
	return 0;
}

static int
check_n(const struct context *cx, const struct target_opts *o, struct err *e)
{
	if (o->behind_n == NULL ||
	    directory_find(context_directory(cx), o->behind_n) == NULL)
		return 0;
	return err_set(e, ERR_USAGE,
	    "-n closes standard input here, but %.64s is a node: say --nodes "
	    "%.64s or --no-stdin",
	    o->behind_n, o->behind_n);
}

/* -r and -a. */
static int
add_groups(const struct context *cx, const struct target_opts *o,
    struct nodeset *set, struct err *e)
{
	const struct directory *d = context_directory(cx);
	struct nodeset *resting = nodeset_new(), *plain = nodeset_new();
	const struct dir_node *n;
	int rv = 0;

	if (resting == NULL || plain == NULL)
		rv = err_set(e, ERR_LOCAL, "out of memory");
	for (size_t i = 0; rv == 0 && i < o->roles.n; i++)
		rv = directory_check_role(d, o->roles.v[i], e);
	for (size_t i = 0; rv == 0 && (n = directory_at(d, i)) != NULL; i++) {
		struct nodeset *to = set;

		if (!selects(o, n))
			continue;
		if (!n->has_agent)
			to = plain;
		else if (n->state == NODE_MAINTENANCE && !o->even_maintenance)
			to = resting;
		rv = nodeset_add(to, n->name, e);
	}
	if (rv == 0) {
		tell_left_out(resting, "in maintenance (-A takes them too)");
		tell_left_out(plain, "no agent there");
	}
	nodeset_free(resting);
	nodeset_free(plain);
	return rv;
}

static bool
selects(const struct target_opts *o, const struct dir_node *n)
{
	if (o->all || (o->even_maintenance && o->roles.n + o->sets.n == 0))
		return true;
	for (size_t i = 0; i < o->roles.n; i++)
		if (directory_node_has_role(n, o->roles.v[i]))
			return true;
	return false;
}

/* -n SET, or the first argument. */
static int
add_sets(const struct context *cx, const struct target_opts *o, const char *set,
    struct nodeset *into, struct err *e)
{
	for (size_t i = 0; i < o->sets.n; i++)
		if (combine_text(cx, o->sets.v[i], NODESET_UNION, into, e) ==
		    -1)
			return -1;
	if (set == NULL)
		return 0;
	return combine_text(cx, set, NODESET_UNION, into, e);
}

static int
combine_text(const struct context *cx, const char *text, enum nodeset_op op,
    struct nodeset *into, struct err *e)
{
	struct nodeset_resolver r = directory_resolver(context_directory(cx));
	struct nodeset *set;
	int rv;

	if (nodeset_parse(text, &r, &set, e) == -1)
		return -1;
	rv = nodeset_combine(into, op, set, e);
	nodeset_free(set);
	return rv;
}

static int
list_nodes(const struct context *cx, struct targets *t, struct err *e)
{
	struct nodeset_iter it;
	const char *name;

	t->nodes = xcalloc(nodeset_count(t->set), sizeof(*t->nodes));
	nodeset_iter_init(&it, t->set);
	while ((name = nodeset_iter_next(&it)) != NULL) {
		const struct dir_node *n =
		    directory_get(context_directory(cx), name, e);

		if (n == NULL)
			return -1;
		t->nodes[t->n++] = n;
	}
	return nodeset_fold(t->set, ",", &t->folded, e);
}

static void
tell_left_out(const struct nodeset *set, const char *why)
{
	char *text = NULL;
	struct err e;

	if (nodeset_count(set) == 0)
		return;
	if (nodeset_fold(set, ",", &text, &e) == 0)
		output_note("left out: %s (%zu): %s", text, nodeset_count(set),
		    why);
	free(text);
}

static int
refuse_empty(const struct target_opts *o, struct err *e)
{
	if (o->roles.n == 1 && o->sets.n == 0 && o->excluded.n == 0 && !o->all)
		return err_set(e, ERR_NO_TARGET,
		    "no node to address has the role %.64s", o->roles.v[0]);
	return err_set(e, ERR_NO_TARGET, "no node is left to address");
}
