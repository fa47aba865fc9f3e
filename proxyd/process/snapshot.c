/* snapshot.c: see snapshot.h. */
#include "proxyd/process/snapshot.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/name.h"
#include "proxyd/process/unmap.h"

static int check_head(const struct snap_head *, size_t size, struct err *);
static const struct snap_site *look_up(const struct snapshot *, uint64_t hash,
    const char *pattern, size_t len);

static const void *
at(const struct snapshot *s, uint32_t off)
{
	return (const char *)s->head + off;
}

struct snapshot *
snapshot_map(int fd, struct err *e)
{
	struct snapshot *s;
	struct stat sb;
	void *image;

	if (fstat(fd, &sb) == -1) {
		err_errno(e, ERR_LOCAL, "cannot stat a snapshot");
		return NULL;
	}
	if ((size_t)sb.st_size < sizeof(struct snap_head)) {
		err_set(e, ERR_CORRUPT, "a snapshot of %lld bytes is cut off",
		    (long long)sb.st_size);
		return NULL;
	}
	image = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (image == MAP_FAILED) {
		err_errno(e, ERR_LOCAL, "cannot map a snapshot");
		return NULL;
	}
	if (check_head(image, (size_t)sb.st_size, e) == -1) {
		munmap(image, (size_t)sb.st_size);
		return NULL;
	}
	if ((s = malloc(sizeof(*s))) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for a snapshot");
		munmap(image, (size_t)sb.st_size);
		return NULL;
	}
	s->head = image;
	s->refs = 1;
	return s;
}

struct snapshot *
snapshot_hold(struct snapshot *s)
{
	s->refs++;
	return s;
}

void
snapshot_release(struct snapshot *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	unmap_later((void *)(uintptr_t)s->head, s->head->size);
	free(s);
}

const struct snap_site *
snapshot_find(const struct snapshot *s, const char *host, size_t len)
{
	struct {
		uint64_t hash;
		size_t dot;
	} suffixes[HOST_MAX_LEN / 2 + 1];
	uint64_t hash = SNAP_HASH_START;
	const struct snap_site *site;
	size_t n = 0;

	if (len == 0 || len > HOST_MAX_LEN)
		return NULL;
	for (size_t i = len; i-- > 0;) {
		hash = snapshot_hash(hash, host[i]);
		if (host[i] == '.' &&
		    n < sizeof(suffixes) / sizeof(*suffixes)) {
			suffixes[n].hash = hash;
			suffixes[n++].dot = i;
		}
	}
	if (host[0] == '.')
		return NULL; /* would be a wildcard's pattern */
	site = look_up(s, hash, host, len);
	while (site == NULL && n-- > 0)
		site = look_up(s, suffixes[n].hash, host + suffixes[n].dot,
		    len - suffixes[n].dot);
	return site;
}

const struct snap_site *
snapshot_default_site(const struct snapshot *s)
{
	if (s->head->default_site == SNAP_NONE)
		return NULL;
	return snapshot_site(s, s->head->default_site);
}

const struct snap_role *
snapshot_role(const struct snapshot *s, uint32_t i)
{
	return (const struct snap_role *)at(s, s->head->roles_off) + i;
}

const struct snap_node *
snapshot_node(const struct snapshot *s, uint32_t i)
{
	return (const struct snap_node *)at(s, s->head->nodes_off) + i;
}

const struct snap_site *
snapshot_site(const struct snapshot *s, uint32_t i)
{
	return (const struct snap_site *)at(s, s->head->sites_off) + i;
}

const char *
snapshot_text(const struct snapshot *s, struct snap_text t)
{
	return t.len == 0 ? "" : at(s, t.off);
}

bool
snapshot_is_peer(const struct snapshot *s, const struct snap_peers *peers,
    const struct addr *peer)
{
	const struct cidr *ranges = at(s, peers->off);

	if (peer->u.sa.sa_family == AF_UNIX)
		return peers->local != 0;
	for (uint32_t i = 0; i < peers->n; i++)
		if (cidr_contains(&ranges[i], peer))
			return true;
	return false;
}

static const struct snap_site *
look_up(const struct snapshot *s, uint64_t hash, const char *pattern,
    size_t len)
{
	const struct snap_host *hosts = at(s, s->head->hosts_off);
	uint32_t mask = s->head->n_hosts - 1, i = (uint32_t)(hash >> 20);

	for (i &= mask; hosts[i].pattern.len != 0; i = (i + 1) & mask)
		if (hosts[i].hash == hash && hosts[i].pattern.len == len &&
		    memcmp(at(s, hosts[i].pattern.off), pattern, len) == 0)
			return snapshot_site(s, hosts[i].site);
	return NULL;
}

static bool
table_fits(const struct snap_head *h, uint32_t off, uint32_t n, size_t row)
{
	return off % 8 == 0 && off <= h->size && n <= (h->size - off) / row;
}

static int
check_head(const struct snap_head *h, size_t size, struct err *e)
{
	if (memcmp(h->magic, SNAP_MAGIC, sizeof(h->magic)) != 0 ||
	    h->version != SNAP_VERSION)
		return err_set(e, ERR_CORRUPT,
		    "a snapshot is not of version %d", SNAP_VERSION);
	if (h->size != size ||
	    !table_fits(h, h->roles_off, h->n_roles,
		sizeof(struct snap_role)) ||
	    !table_fits(h, h->nodes_off, h->n_nodes,
		sizeof(struct snap_node)) ||
	    !table_fits(h, h->sites_off, h->n_sites,
		sizeof(struct snap_site)) ||
	    !table_fits(h, h->hosts_off, h->n_hosts,
		sizeof(struct snap_host)) ||
	    !table_fits(h, h->trusted.off, h->trusted.n, sizeof(struct cidr)) ||
	    !table_fits(h, h->senders.off, h->senders.n, sizeof(struct cidr)) ||
	    h->n_hosts == 0 || (h->n_hosts & (h->n_hosts - 1)) != 0)
		return err_set(e, ERR_CORRUPT,
		    "a snapshot's tables do not fit its size");
	return 0;
}
