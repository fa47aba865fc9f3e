/* cgroup.c: see cgroup.h. */
#include "nodeagent/cgroup.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"

#define ORDER_PREFIX "order-"
#define KEEP_PREFIX  "keep-"
#define LEFT_GROUP   "left" /* daemons that finished orders have started */

static char cgroup_own[PATH_MAX - 128];

static bool find_own(char *path, size_t size);
static bool find_mount(char path[PATH_MAX]);
static bool is_delegated(const char *path);
static bool group_file(const struct cgroup *, const char *file,
    char path[PATH_MAX]);
static bool write_file(const char *path, const char *text);
static bool starts_with(const char *text, const char *prefix);
static void move_out(const struct cgroup *);
static void sweep(void);

void
cgroup_setup(void)
{
	char left[PATH_MAX];

	if (!find_own(cgroup_own, sizeof(cgroup_own)) ||
	    !is_delegated(cgroup_own)) {
		cgroup_own[0] = '\0';
		return;
	}
	snprintf(left, sizeof(left), "%s/%s", cgroup_own, LEFT_GROUP);
	mkdir(left, 0755);
	sweep();
}

void
cgroup_make(struct cgroup *g, bool keep)
{
	static uint64_t serial;

	g->path[0] = '\0';
	if (cgroup_own[0] == '\0')
		return;
	snprintf(g->path, sizeof(g->path), "%s/%s%d-%llu", cgroup_own,
	    keep ? KEEP_PREFIX : ORDER_PREFIX, (int)getpid(),
	    (unsigned long long)++serial);
	if (mkdir(g->path, 0755) == -1) {
		log_debug("cannot make control group %s", g->path);
		g->path[0] = '\0';
	}
}

void
cgroup_enter(const struct cgroup *g)
{
	char path[PATH_MAX];

	if (group_file(g, "cgroup.procs", path))
		write_file(path, "0");
}

void
cgroup_kill(const struct cgroup *g)
{
	char path[PATH_MAX];

	if (group_file(g, "cgroup.kill", path))
		write_file(path, "1");
}

bool
cgroup_is_empty(const struct cgroup *g)
{
	char path[PATH_MAX], text[256];
	ssize_t n;
	int fd;

	if (!group_file(g, "cgroup.events", path) ||
	    (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return true;
	n = io_read_n(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "populated 1") == NULL;
}

void
cgroup_remove(struct cgroup *g)
{
	if (g->path[0] == '\0')
		return;
	if (rmdir(g->path) == -1) {
		move_out(g);
		rmdir(g->path);
	}
	g->path[0] = '\0';
}

/* Our line of /proc/self/cgroup, "0::/system.slice/muster-nodeagent.service",
 * below the place where cgroup v2 is mounted. */
static bool
find_own(char *path, size_t size)
{
	char line[PATH_MAX], mount[PATH_MAX];
	bool found = false;
	FILE *f;

	if (!find_mount(mount) ||
	    (f = fopen("/proc/self/cgroup", "re")) == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		found = starts_with(line, "0::/") &&
		    (size_t)snprintf(path, size, "%s%s", mount, line + 3) <
			size;
	}
	fclose(f);
	return found;
}

/* "cgroup2 /sys/fs/cgroup cgroup2 rw,..." in /proc/self/mounts. */
static bool
find_mount(char path[PATH_MAX])
{
	char line[PATH_MAX], *save, *place, *type;
	bool found = false;
	FILE *f;

	if ((f = fopen("/proc/self/mounts", "re")) == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		save = NULL;
		strtok_r(line, " ", &save);
		place = strtok_r(NULL, " ", &save);
		type = strtok_r(NULL, " ", &save);
		found = type != NULL && strcmp(type, "cgroup2") == 0;
		if (found)
			snprintf(path, PATH_MAX, "%s", place);
	}
	fclose(f);
	return found;
}

/* systemd marks what it delegates (systemd.resource-control(5)); a group
 * that merely happens to be writable is not ours to change. */
static bool
is_delegated(const char *path)
{
	char mark[8] = "";

	return (getxattr(path, "user.delegate", mark, sizeof(mark)) == 1 ||
		   getxattr(path, "trusted.delegate", mark, sizeof(mark)) ==
		       1) &&
	    mark[0] == '1';
}

static bool
group_file(const struct cgroup *g, const char *file, char path[PATH_MAX])
{
	struct err ignored;

	return g != NULL && g->path[0] != '\0' &&
	    io_path(path, PATH_MAX, g->path, file, &ignored) == 0;
}

static bool
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd == -1)
		return false;
	done = io_write_n(fd, text, strlen(text)) == 0;
	close(fd);
	return done;
}

static bool
starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void
move_out(const struct cgroup *g)
{
	char from[PATH_MAX], to[PATH_MAX], pid[32];
	FILE *f;

	if (!group_file(g, "cgroup.procs", from) ||
	    (f = fopen(from, "re")) == NULL)
		return;
	snprintf(to, sizeof(to), "%s/%s/cgroup.procs", cgroup_own, LEFT_GROUP);
	while (fgets(pid, sizeof(pid), f) != NULL)
		write_file(to, pid);
	fclose(f);
}

/* Orders of an agent that was killed end now; what was told to outlive it
 * goes on, and its group is removed once it is empty. */
static void
sweep(void)
{
	struct err ignored;
	struct cgroup g;
	struct dirent *d;
	DIR *dir;

	if ((dir = opendir(cgroup_own)) == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		bool order = starts_with(d->d_name, ORDER_PREFIX);

		if (!order && !starts_with(d->d_name, KEEP_PREFIX))
			continue;
		if (io_path(g.path, sizeof(g.path), cgroup_own, d->d_name,
			&ignored) == -1)
			continue;
		if (order && !cgroup_is_empty(&g)) {
			log_warn("ending what an earlier agent left in %s",
			    g.path);
			cgroup_kill(&g);
		}
		rmdir(g.path);
	}
	closedir(dir);
}
