/* pages.c: see pages.h. */
#include "proxyd/process/pages.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/log.h"

struct page {
	char *path; /* NULL: a free slot */
	struct snap_text text;
};

static struct page *slot_of(const struct pages *, const char *path);
static int grow(struct pages *, struct err *);
static int read_page(struct snapshot_plan *, const char *path,
    struct snap_text *, struct err *);

void
pages_free(struct pages *p)
{
	for (size_t i = 0; i < p->room; i++)
		free(p->slots[i].path);
	free(p->slots);
	memset(p, 0, sizeof(*p));
}

int
pages_get(struct pages *p, struct snapshot_plan *plan, const char *path,
    struct snap_text *text, struct err *e)
{
	struct snap_text read = { 0, 0 };
	struct page *slot;
	char *copy;

	*text = read;
	if (*path == '\0')
		return 0;
	if (p->n * 2 >= p->room && grow(p, e) == -1)
		return -1;
	slot = slot_of(p, path);
	if (slot->path == NULL) {
		if ((copy = strdup(path)) == NULL)
			return err_set(e, ERR_LOCAL, "out of memory for pages");
		if (read_page(plan, path, &read, e) == -1) {
			free(copy);
			return -1;
		}
		slot->path = copy;
		slot->text = read;
		p->n++;
	}
	*text = slot->text;
	return 0;
}

static struct page *
slot_of(const struct pages *p, const char *path)
{
	uint64_t hash = SNAP_HASH_START;
	size_t i;

	for (const char *c = path; *c != '\0'; c++)
		hash = snapshot_hash(hash, *c);
	for (i = hash % p->room; p->slots[i].path != NULL;
	     i = (i + 1) % p->room)
		if (strcmp(p->slots[i].path, path) == 0)
			break;
	return &p->slots[i];
}

static int
grow(struct pages *p, struct err *e)
{
	struct pages more = { .room = p->room == 0 ? 16 : p->room * 2 };

	if ((more.slots = calloc(more.room, sizeof(*more.slots))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for pages");
	more.n = p->n;
	for (size_t i = 0; i < p->room; i++)
		if (p->slots[i].path != NULL)
			*slot_of(&more, p->slots[i].path) = p->slots[i];
	free(p->slots);
	*p = more;
	return 0;
}

static int
read_page(struct snapshot_plan *plan, const char *path, struct snap_text *text,
    struct err *e)
{
	struct err why;
	char *page;
	size_t size;
	int rv;

	if (io_read_file(path, PAGE_SIZE_MAX, &page, &size, &why) == -1) {
		log_warn("%s; the built-in page is shown", why.text);
		return 0;
	}
	rv = plan_text(plan, page, text, e);
	free(page);
	return rv;
}
