/* cmd_registry.c: the registry as a whole: text, soundness, copies. */
#include "clusterctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/cert_keep.h"
#include "clusterctl/output.h"
#include "clusterctl/report.h"
#include "clusterctl/slurp.h"
#include "clusterctl/tell.h"
#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/registry/export.h"
#include "common/registry/registry.h"

struct apply_opts {
	bool dry_run;
};

struct log_opts {
	uint64_t n;
};

static const struct opt apply_rows[] = {
	{ .name = "dry-run",
	    .type = OPT_FLAG,
	    .offset = offsetof(struct apply_opts, dry_run),
	    .help = "tell what would change, change nothing" },
};

static const struct opt log_rows[] = {
	{ .name = "number",
	    .letter = 'n',
	    .type = OPT_NUMBER,
	    .arg = "N",
	    .offset = offsetof(struct log_opts, n),
	    .initial = "20",
	    .min = 1,
	    .max = 1000000000,
	    .help = "how many" },
};

static const struct column change_columns[] = {
	{ .title = "REVISION", .key = "revision", .kind = COLUMN_NUMBER },
	{ .title = "TIME", .key = "time" },
	{ .title = "WHO", .key = "who" },
	{ .title = "CHANGE", .key = "what" },
};

static int run_export(struct context *, const void *, int, char **,
    struct err *);
static int run_apply(struct context *, const void *, int, char **,
    struct err *);
static int run_check(struct context *, const void *, int, char **,
    struct err *);
static int run_backup(struct context *, const void *, int, char **,
    struct err *);
static int run_log(struct context *, const void *, int, char **, struct err *);
static void tell_change(const char *line, void *arg);
static void tell_finding(const char *sentence, void *arg);
static int put_change(const struct change *, void *arg);

const struct command cmd_registry_export = {
	.name = "registry export",
	.usage = "[FILE]",
	.summary = "the registry as JSON text, without any secret",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	.max_args = 1,
	.run = run_export,
};

const struct command cmd_registry_apply = {
	.name = "registry apply",
	.usage = "[--dry-run] FILE",
	.summary = "make the registry match an edited export, or tell how",
	.about = "All or nothing.  A member that FILE leaves out (\"sites\", "
		 "\"nodes\" ...) is left\nalone; in one that is there, what is "
		 "not listed is removed.  FILE - is stdin.\n",
	.examples = "  clusterctl registry export all.json; edit all.json\n"
		    "  clusterctl registry apply --dry-run all.json\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY | NEEDS_CLUSTER,
	OPTS_OF(apply_rows, struct apply_opts),
	.min_args = 1,
	.max_args = 1,
	.run = run_apply,
};

const struct command cmd_registry_check = {
	.name = "registry check",
	.usage = "",
	.summary = "look for damage",
	.about = "Exit status 0: sound; 8: damaged, each finding on a line.\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	.run = run_check,
};

const struct command cmd_registry_backup = {
	.name = "registry backup",
	.usage = "FILE",
	.summary = "a whole copy of the database, while it is in use",
	.about = "Holds the hashes of open tokens: keep it as safe as the "
		 "state directory.  The\nauthority key and the keys of sites "
		 "(tls/) are not in it; "
		 "operations.md says how\nto keep them.\n",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	.min_args = 1,
	.max_args = 1,
	.run = run_backup,
};

const struct command cmd_registry_log = {
	.name = "registry log",
	.usage = "[-n N]",
	.summary = "the last changes: when, by whom, what",
	.section = SECTION_REGISTRY,
	.needs = NEEDS_REGISTRY,
	OPTS_OF(log_rows, struct log_opts),
	.run = run_log,
};

static int
run_export(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	struct registry *r = context_registry(cx);
	char *text = NULL;
	size_t size = 0;
	FILE *f;
	int rv;

	(void)opts;
	if (argc == 0)
		return registry_export(r, stdout, e);
	if ((f = open_memstream(&text, &size)) == NULL)
		return err_errno(e, ERR_LOCAL, "cannot export");
	rv = registry_export(r, f, e);
	if (fclose(f) == EOF && rv == 0)
		rv = err_errno(e, ERR_LOCAL, "cannot export");
	if (rv == 0)
		rv = io_write_file(argv[0], text, size, 0600, e);
	free(text);
	return rv;
}

static int
run_apply(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct apply_opts *o = opts;
	bool revokes = false;
	size_t size, n = 0;
	char *text;
	int rv;

	(void)argc;
	if (slurp(argv[0], EXPORT_SIZE_MAX, &text, &size, e) == -1)
		return -1;
	rv = registry_apply(context_registry(cx), text, size, o->dry_run,
	    tell_change, &revokes, &n, e);
	free(text);
	if (rv == -1)
		return -1;
	if (!o->dry_run)
		cert_sweep(cx);
	if (o->dry_run && output_is_tty())
		output_note("%zu change%s; nothing was done", n,
		    n == 1 ? "" : "s");
	return revokes && !o->dry_run ? tell_everybody(cx) : 0;
}

static void
tell_change(const char *line, void *arg)
{
	bool *revokes = arg;

	if (strncmp(line, "remove node ", 12) == 0 ||
	    strncmp(line, "remove operator ", 16) == 0)
		*revokes = true;
	if (output_is_json())
		output_json(json_pack("{s:s}", "change", line));
	else
		puts(line);
}

static int
run_check(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	size_t n;

	(void)opts;
	(void)argc;
	(void)argv;
	if (registry_check(context_registry(cx), tell_finding, NULL, &n, e) ==
	    -1)
		return -1;
	if (n > 0)
		return err_set(e, ERR_CORRUPT,
		    "the registry is damaged (%zu finding%s): restore a "
		    "backup, see operations.md",
		    n, n == 1 ? "" : "s");
	return report_done(cx, "The registry is sound.");
}

static void
tell_finding(const char *sentence, void *arg)
{
	(void)arg;
	if (output_is_json())
		output_json(json_pack("{s:s}", "finding", sentence));
	else
		puts(sentence);
}

static int
run_backup(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	(void)opts;
	(void)argc;
	if (registry_backup(context_registry(cx), argv[0], e) == -1)
		return -1;
	return report_done(cx, "The copy is in %s.", argv[0]);
}

static int
run_log(struct context *cx, const void *opts, int argc, char **argv,
    struct err *e)
{
	const struct log_opts *o = opts;
	struct table *t = table_new(change_columns, nitems(change_columns));
	int rv = registry_changes(context_registry(cx), (size_t)o->n,
	    put_change, t, e);

	(void)argc;
	(void)argv;
	table_end(t);
	return rv;
}

static int
put_change(const struct change *c, void *arg)
{
	struct table *t = arg;
	char at[32];

	clock_format_utc(c->at_ms, at, sizeof(at));
	table_put_number(t, c->revision);
	table_put(t, at);
	table_put(t, c->who);
	table_put(t, c->what);
	return 0;
}
