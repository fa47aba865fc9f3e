/* accounts.c: see accounts.h. */
#include "proxyd/process/accounts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"

#define HEAD	      "muster-accounts 2\n"
#define HEAD_1	      "muster-accounts 1\n" /* as long */
#define FILE_SIZE_MAX (256 * 1024 * 1024)

/* One account as its line has it. */
struct line {
	int64_t id;
	unsigned kind;
	uint64_t tunnels, requests, bytes_in, bytes_out, node_us, status[6];
	uint64_t limited;
};

static void put(FILE *, const struct sb_account *);
static const char *get(const char *p, bool first, struct line *);
static void add(struct scoreboard *, const struct line *);

int
accounts_save(const struct scoreboard *sb, const char *path, struct err *e)
{
	uint32_t n = atomic_load(&sb->head->used_accounts);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rv;

	if (f == NULL)
		return err_errno(e, ERR_LOCAL, "no memory for %s", path);
	fputs(HEAD, f);
	for (uint32_t i = 0; i < n; i++) {
		const struct sb_account *a = sb_account(sb, i);

		if (atomic_load(&a->kind) != 0 &&
		    atomic_load(&a->requests) != 0)
			put(f, a);
	}
	rv = fclose(f) == EOF ?
	    err_errno(e, ERR_LOCAL, "no memory for %s", path) :
	    io_write_file(path, text, size, 0600, e);
	free(text);
	return rv;
}

int
accounts_restore(struct scoreboard *sb, const char *path, struct err *e)
{
	struct line line;
	const char *p;
	bool first;
	char *text;
	size_t size;

	if (access(path, F_OK) == -1 && errno == ENOENT)
		return 0;
	if (io_read_file(path, FILE_SIZE_MAX, &text, &size, e) == -1)
		return -1;
	p = text + strlen(HEAD);
	first = strncmp(text, HEAD_1, strlen(HEAD_1)) == 0;
	if (first || strncmp(text, HEAD, strlen(HEAD)) == 0)
		while (p != NULL && *p != '\0')
			p = get(p, first, &line);
	else
		p = NULL;
	if (p == NULL) {
		free(text);
		return err_set(e, ERR_CORRUPT,
		    "%s is damaged; the counters of sites begin anew", path);
	}
	for (p = text + strlen(HEAD); *p != '\0'; add(sb, &line))
		p = get(p, first, &line);
	free(text);
	return 0;
}

static void
put(FILE *f, const struct sb_account *a)
{
	fprintf(f,
	    "%u %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	    " %" PRIu64,
	    atomic_load(&a->kind), atomic_load(&a->id),
	    atomic_load(&a->requests), atomic_load(&a->bytes_in),
	    atomic_load(&a->bytes_out), atomic_load(&a->node_us),
	    atomic_load(&a->tunnels));
	for (size_t i = 0; i < nitems(a->status); i++)
		fprintf(f, " %" PRIu64, atomic_load(&a->status[i]));
	fprintf(f, " %" PRIu64 "\n", atomic_load(&a->limited));
}

/* The next line's start, or NULL when this one is no account. */
static const char *
get(const char *p, bool first, struct line *l)
{
	int n = -1, more = 0;

	if (sscanf(p,
		"%u %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		" %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		" %" SCNu64 " %" SCNu64 "%n",
		&l->kind, &l->id, &l->requests, &l->bytes_in, &l->bytes_out,
		&l->node_us, &l->tunnels, &l->status[0], &l->status[1],
		&l->status[2], &l->status[3], &l->status[4], &l->status[5],
		&n) != 13 ||
	    n == -1)
		return NULL;
	l->limited = 0;
	if (!first && sscanf(p + n, " %" SCNu64 "%n", &l->limited, &more) != 1)
		return NULL;
	n += more;
	if (p[n] != '\n' || l->id <= 0 ||
	    (l->kind != SB_SITE && l->kind != SB_OWNER))
		return NULL;
	return p + n + 1;
}

static void
add(struct scoreboard *sb, const struct line *l)
{
	uint32_t row = sb_account_row(sb, (enum sb_account_kind)l->kind, l->id);
	struct sb_account *a;

	if (row == SB_NONE)
		return;
	a = sb_account(sb, row);
	sb_add(&a->requests, l->requests);
	sb_add(&a->bytes_in, l->bytes_in);
	sb_add(&a->bytes_out, l->bytes_out);
	sb_add(&a->node_us, l->node_us);
	sb_add(&a->tunnels, l->tunnels);
	sb_add(&a->limited, l->limited);
	for (size_t i = 0; i < nitems(a->status); i++)
		sb_add(&a->status[i], l->status[i]);
}
