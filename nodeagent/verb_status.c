/* verb_status.c: the verbs ping and status: how this node is. */
#include <sys/sysinfo.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/net/proto.h"
#include "nodeagent/agent.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

static json_t *roles_array(const char *roles);
static void add_machine(json_t *answer);
static size_t read_proc(const char *path, char *buf, size_t size);
static json_int_t meminfo_kb(const char *text, const char *field);
static json_int_t rss_kb(void);

int
verb_ping(struct session *s, json_t *args, struct err *e)
{
	(void)args;
	(void)e;
	session_reply(s,
	    json_pack("{s:I}", "time_ms", (json_int_t)clock_wall_ms()));
	return 0;
}

int
verb_status(struct session *s, json_t *args, struct err *e)
{
	const struct agent *a = session_agent(s);
	json_t *answer;

	(void)args;
	answer =
	    json_pack("{s:s, s:s, s:[i,i], s:o, s:I, s:I, s:I, s:I, s:I, s:I}",
		"node", a->view.name, "version", MUSTER_VERSION, "protocol",
		PROTO_LOWEST, PROTO_HIGHEST, "roles",
		roles_array(a->view.roles), "uptime_s",
		(json_int_t)((clock_mono_ms() - a->started_ms) / 1000),
		"time_ms", (json_int_t)clock_wall_ms(), "roster_revision",
		(json_int_t)a->view.revision, "cert_not_after_s",
		(json_int_t)a->cert.not_after_s, "orders",
		(json_int_t)a->n_orders, "rss_kb", rss_kb());
	if (answer == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for an answer");
	add_machine(answer);
	session_reply(s, answer);
	return 0;
}

static json_t *
roles_array(const char *roles)
{
	json_t *array = json_array();

	while (*roles != '\0') {
		size_t len = strcspn(roles, " ");

		json_array_append_new(array, json_stringn(roles, len));
		roles += len + strspn(roles + len, " ");
	}
	return array;
}

static void
add_machine(json_t *answer)
{
	double load[3] = { 0, 0, 0 };
	char text[4096];

	if (getloadavg(load, 3) == 3)
		json_object_set_new(answer, "load",
		    json_pack("[f,f,f]", load[0], load[1], load[2]));
	json_object_set_new(answer, "cpus", json_integer(get_nprocs()));
	if (read_proc("/proc/meminfo", text, sizeof(text)) == 0)
		return;
	json_object_set_new(answer, "mem_total",
	    json_integer(meminfo_kb(text, "MemTotal:") * 1024));
	json_object_set_new(answer, "mem_available",
	    json_integer(meminfo_kb(text, "MemAvailable:") * 1024));
}

/* Files of /proc have no size; a string of what fits. */
static size_t
read_proc(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return 0;
	n = io_read_n(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static json_int_t
meminfo_kb(const char *text, const char *field)
{
	const char *at = strstr(text, field);

	return at != NULL ? strtoll(at + strlen(field), NULL, 10) : 0;
}

static json_int_t
rss_kb(void)
{
	char text[256], *end;
	long pages;

	if (read_proc("/proc/self/statm", text, sizeof(text)) == 0)
		return 0;
	strtol(text, &end, 10);
	pages = strtol(end, NULL, 10);
	return (json_int_t)pages * sysconf(_SC_PAGESIZE) / 1024;
}
