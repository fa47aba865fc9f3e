/* cmd_audit.c: the audit log of this machine: what was ordered. */
#include "clusterctl/command.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "clusterctl/audit_row.h"
#include "clusterctl/output.h"
#include "common/audit/audit.h"
#include "common/base/io.h"

struct audit_opts {
	bool verify, node, operator;
	uint64_t last;
};

static const struct opt audit_rows[] = {
	{ .name = "verify",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct audit_opts, verify),
	    .help = "check the chain of hashes, print its head" },
	{ .name = "node",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct audit_opts, node),
	    .help = "only what this node was ordered to do" },
	{ .name = "operator",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct audit_opts, operator),
	    .help = "only what was ordered from here" },
	{ .name = "last",
	    .letter = 'n',
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .offset = offsetof(struct audit_opts, last),
	    .initial = "0",
	    .max = UINT64_MAX,
	    .help = "only the last N events; 0: all" },
};

static const struct {
	const char *name;
	enum state_file file;
} logs[] = {
	{ "operator", STATE_AUDIT_OPERATOR },
	{ "node", STATE_AUDIT_NODE },
};

struct shown {
	const char *log;
	struct table *table;
};

static int run_audit(struct context *, const void *, int, char **,
    struct err *);
static bool wanted(const struct audit_opts *, enum state_file);
static int verify(const char *name, const char *path, struct err *);
static int show(struct shown *, const char *path, uint64_t last, struct err *);
static int print_event(uint64_t line, const json_t *, void *arg);
static int put_event(uint64_t line, const json_t *, void *arg);

const struct command cmd_audit = {
	.name = "audit",
	.usage = "[--verify] [--node | --operator] [-n N]",
	.summary = "the orders that were given from here and carried out here",
	.about = "Both logs of this machine; --json prints the events as they "
		 "are written down, each\nwith the hash of the one before "
		 "(muster-audit(5)).  Note the head that --verify\nprints "
		 "elsewhere, and nobody can cut or rewrite the log unseen.\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_STATE,
	OPTS_OF(audit_rows, struct audit_opts),
	.run = run_audit,
};

static int
run_audit(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct audit_opts *o = opts;
	struct shown s = { .table = audit_table() };
	char path[PATH_MAX];
	int rv = 0;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < nitems(logs) && rv == 0; i++) {
		if (!wanted(o, logs[i].file))
			continue;
		state_path(context_state(cx), logs[i].file, path);
		s.log = logs[i].name;
		rv = o->verify ? verify(s.log, path, e) :
				 show(&s, path, o->last, e);
	}
	table_end(s.table);
	return rv;
}

static bool
wanted(const struct audit_opts *o, enum state_file file)
{
	if (o->node == o->operator)
		return true;
	return file == (o->node ? STATE_AUDIT_NODE : STATE_AUDIT_OPERATOR);
}

/* Stops at the first broken log: its sentence must not be missed. */
static int
verify(const char *name, const char *path, struct err *e)
{
	struct audit_report r;

	if (audit_verify(path, &r, e) == -1)
		return -1;
	if (output_is_json())
		output_json(json_pack("{s:s,s:b,s:I,s:I,s:b,s:s}", "log", name,
		    "sound", r.bad_line == 0, "lines", (json_int_t)r.n_lines,
		    "healed", (json_int_t)r.n_healed, "torn_tail", r.torn_tail,
		    "head", r.head_hex));
	if (r.bad_line != 0)
		return err_set(e, ERR_CORRUPT,
		    "%s: line %" PRIu64 " breaks the chain: %s", path,
		    r.bad_line, r.why);
	if (!output_is_json())
		printf("%s: %" PRIu64 " events, sound%s; head %s\n", name,
		    r.n_lines, r.torn_tail ? " but for a torn last line" : "",
		    r.n_lines > 0 ? r.head_hex : "-");
	return 0;
}

static int
show(struct shown *s, const char *path, uint64_t last, struct err *e)
{
	struct audit_report r;
	uint64_t first = 1;

	if (last > 0) {
		if (audit_verify(path, &r, e) == -1)
			return -1;
		if (r.n_lines > last)
			first = r.n_lines - last + 1;
	}
	return audit_each(path, first,
	    output_is_json() ? print_event : put_event, s, e);
}

static int
print_event(uint64_t line, const json_t *event, void *arg)
{
	(void)line;
	(void)arg;
	json_dumpf(event, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	return ferror(stdout) ? 1 : 0;
}

static int
put_event(uint64_t line, const json_t *event, void *arg)
{
	struct shown *s = arg;

	(void)line;
	audit_row_put(s->table, s->log, event);
	return ferror(stdout) ? 1 : 0;
}
