/* gather.c: see gather.h. */
#include "clusterctl/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "clusterctl/labels.h"
#include "clusterctl/streams.h"
#include "clusterctl/utf8.h"
#include "common/nodeset/nodeset.h"

#define DASHES	   "---------------"
#define CHUNK_SIZE 65536

/* One node's output. */
struct output {
	crypto_generichash_state hash; /* of all bytes so far */
	unsigned char digest[crypto_generichash_BYTES];
	size_t node;
	bool answered;
};

struct gather {
	const char *const *names; /* borrowed */
	size_t n;
	struct output *output;
	struct streams *streams;
	size_t *order; /* node indexes; groups point into it */
	struct gather_group *group;
	size_t n_groups;
	bool grouped;
};

static int find_groups(struct gather *, struct err *);
static size_t digest_all(struct gather *, struct output **);
static int add_group(struct gather *, struct output **, size_t n, size_t at,
    struct err *);
static int name_group(const struct gather *, struct gather_group *,
    struct err *);
static void forget_groups(struct gather *);
static int by_digest(const void *, const void *);
static int by_rank(const void *, const void *);
static int print_group(struct gather *, const struct gather_group *,
    enum gather_style, bool last, struct sink *, struct err *);
static int print_text(struct gather *, const struct gather_group *,
    bool end_line, struct sink *, struct err *);
static int print_lines(struct gather *, const struct gather_group *,
    struct sink *, struct err *);

struct gather *
gather_new(const char *const *names, size_t n, size_t memory_max, struct err *e)
{
	size_t size = (n > 0 ? n : 1) * sizeof(struct output);
	struct gather *g = calloc(1, sizeof(*g));

	if (g == NULL)
		goto no_memory;
	g->names = names;
	g->n = n;
	/* The state of the hash asks for an alignment above malloc's. */
	g->output = aligned_alloc(_Alignof(struct output), size);
	g->order = calloc(n > 0 ? n : 1, sizeof(*g->order));
	if (g->output == NULL || g->order == NULL)
		goto no_memory;
	if ((g->streams = streams_new(n, memory_max, e)) == NULL)
		goto fail;
	memset(g->output, 0, size);
	for (size_t i = 0; i < n; i++) {
		g->output[i].node = i;
		crypto_generichash_init(&g->output[i].hash, NULL, 0,
		    crypto_generichash_BYTES);
	}
	return g;
no_memory:
	err_set(e, ERR_LOCAL, "out of memory for output");
fail:
	gather_free(g);
	return NULL;
}

void
gather_free(struct gather *g)
{
	if (g == NULL)
		return;
	forget_groups(g);
	streams_free(g->streams);
	free(g->output);
	free(g->order);
	free(g);
}

int
gather_put(struct gather *g, size_t node, const void *bytes, size_t n,
    struct err *e)
{
	struct output *o = &g->output[node];

	forget_groups(g);
	o->answered = true;
	if (streams_put(g->streams, node, bytes, n, e) == -1)
		return -1;
	crypto_generichash_update(&o->hash, bytes, n);
	return 0;
}

int
gather_groups(struct gather *g, const struct gather_group **groups, size_t *n,
    struct err *e)
{
	if (!g->grouped && find_groups(g, e) == -1) {
		forget_groups(g);
		return -1;
	}
	g->grouped = true;
	*groups = g->group;
	*n = g->n_groups;
	return 0;
}

ssize_t
gather_read(struct gather *g, const struct gather_group *group, uint64_t offset,
    void *buf, size_t n, struct err *e)
{
	return streams_read(g->streams, group->nodes[0], offset, buf, n, e);
}

int
gather_print(struct gather *g, enum gather_style style, struct sink *s,
    struct err *e)
{
	const struct gather_group *group;
	size_t n;

	if (gather_groups(g, &group, &n, e) == -1)
		return -1;
	while (n > 0 && group[n - 1].size == 0)
		n--;
	for (size_t i = 0; i < n; i++)
		if (group[i].size > 0 &&
		    print_group(g, &group[i], style, i == n - 1, s, e) == -1)
			return -1;
	return 0;
}

static int
find_groups(struct gather *g, struct err *e)
{
	struct output **sorted;
	size_t n, end;
	int rv = 0;

	sorted = reallocarray(NULL, g->n > 0 ? g->n : 1, sizeof(*sorted));
	if (sorted == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for output");
	n = digest_all(g, sorted);
	g->group = calloc(n > 0 ? n : 1, sizeof(*g->group));
	if (g->group == NULL)
		rv = err_set(e, ERR_LOCAL, "out of memory for output");
	for (size_t i = 0; rv == 0 && i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (memcmp(sorted[i]->digest, sorted[end]->digest,
				sizeof(sorted[i]->digest)) != 0)
				break;
		rv = add_group(g, sorted + i, end - i, i, e);
	}
	free(sorted);
	if (rv == 0)
		qsort(g->group, g->n_groups, sizeof(*g->group), by_rank);
	return rv;
}

/* The outputs of those who answered, equal ones side by side. */
static size_t
digest_all(struct gather *g, struct output **sorted)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct output *o = &g->output[i];
		crypto_generichash_state hash = o->hash;

		if (!o->answered)
			continue;
		crypto_generichash_final(&hash, o->digest, sizeof(o->digest));
		sorted[n++] = o;
	}
	qsort(sorted, n, sizeof(*sorted), by_digest);
	return n;
}

static int
add_group(struct gather *g, struct output **outputs, size_t n, size_t at,
    struct err *e)
{
	struct gather_group *group = &g->group[g->n_groups++];

	for (size_t i = 0; i < n; i++)
		g->order[at + i] = outputs[i]->node;
	*group = (struct gather_group){ .nodes = g->order + at, .n_nodes = n };
	group->size = streams_size(g->streams, group->nodes[0]);
	return name_group(g, group, e);
}

static int
name_group(const struct gather *g, struct gather_group *group, struct err *e)
{
	struct nodeset *set = nodeset_new();
	int rv = 0;

	if (set == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for output");
	for (size_t i = 0; rv == 0 && i < group->n_nodes; i++)
		rv = nodeset_add(set, g->names[group->nodes[i]], e);
	if (rv == 0)
		rv = nodeset_fold(set, ",", &group->set, e);
	nodeset_free(set);
	if (rv == -1)
		return -1;
	if (group->n_nodes == 1)
		group->label = strdup(group->set);
	else if (asprintf(&group->label, "%s (%zu)", group->set,
		     group->n_nodes) == -1)
		group->label = NULL;
	if (group->label == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for output");
	return 0;
}

static void
forget_groups(struct gather *g)
{
	for (size_t i = 0; i < g->n_groups; i++) {
		free(g->group[i].label);
		free(g->group[i].set);
	}
	free(g->group);
	g->group = NULL;
	g->n_groups = 0;
	g->grouped = false;
}

static int
by_digest(const void *a, const void *b)
{
	const struct output *x = *(struct output *const *)a;
	const struct output *y = *(struct output *const *)b;
	int c = memcmp(x->digest, y->digest, sizeof(x->digest));

	return c != 0 ? c : (x->node > y->node) - (x->node < y->node);
}

/* Largest first, then the lowest node. */
static int
by_rank(const void *a, const void *b)
{
	const struct gather_group *x = a, *y = b;

	if (x->n_nodes != y->n_nodes)
		return x->n_nodes > y->n_nodes ? -1 : 1;
	return (x->nodes[0] > y->nodes[0]) - (x->nodes[0] < y->nodes[0]);
}

static int
print_group(struct gather *g, const struct gather_group *group,
    enum gather_style style, bool last, struct sink *s, struct err *e)
{
	if (style == GATHER_PREFIX)
		return print_lines(g, group, s, e);
	if (style == GATHER_HEADER &&
	    sink_printf(s, e, DASHES "\n%s\n" DASHES "\n", group->label) == -1)
		return -1;
	/* Bare text stays exact, unless more would run into its last line. */
	return print_text(g, group, style == GATHER_HEADER || !last, s, e);
}

static int
print_text(struct gather *g, const struct gather_group *group, bool end_line,
    struct sink *s, struct err *e)
{
	char chunk[CHUNK_SIZE], last = '\n';
	uint64_t at = 0;

	while (at < group->size && !s->closed) {
		ssize_t n = gather_read(g, group, at, chunk, sizeof(chunk), e);
		size_t part;

		if (n <= 0)
			return -1;
		/* A chunk may end within a character: it begins the next. */
		part = utf8_whole(chunk, (size_t)n);
		if (part == 0 || at + (uint64_t)n == group->size)
			part = (size_t)n;
		if (sink_put(s, chunk, part, e) == -1)
			return -1;
		last = chunk[part - 1];
		at += part;
	}
	return end_line && last != '\n' ? sink_printf(s, e, "\n") : 0;
}

static int
print_lines(struct gather *g, const struct gather_group *group, struct sink *s,
    struct err *e)
{
	char chunk[CHUNK_SIZE];
	struct label label;
	uint64_t at = 0;
	ssize_t n = 0;
	int rv = 0;

	label_init(&label, s, group->set);
	while (rv == 0 && at < group->size && !s->closed) {
		n = gather_read(g, group, at, chunk, sizeof(chunk), e);
		rv = n <= 0 ? -1 : label_put(&label, chunk, (size_t)n, e);
		at += (uint64_t)n;
	}
	if (rv == 0)
		rv = label_end(&label, e);
	label_fini(&label);
	return rv;
}
