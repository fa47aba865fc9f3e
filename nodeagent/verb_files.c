/* verb_files.c: the verbs have, push and pull; files.c does the work. */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/base/io.h"
#include "common/base/json.h"
#include "nodeagent/files.h"
#include "nodeagent/order.h"
#include "nodeagent/session.h"
#include "nodeagent/verbs.h"

#define SIZE_MAX_PUSHED ((int64_t)1 << 50)

static const char *const type_names[] = {
	[FILE_PLAIN] = "file",
	[FILE_DIRECTORY] = "dir",
	[FILE_LINK] = "link",
};

static int start(struct session *, const struct file_spec *,
    int (*call)(const void *, int), bool has_input, struct err *);
static int parse_path(json_t *args, const char *field, char path[PATH_MAX],
    struct err *);
static int parse_hash(json_t *args, struct file_spec *, struct err *);
static int parse_pushed(json_t *args, struct file_spec *, struct err *);
static json_t *conclude(const struct job_result *, struct err *);

static const struct order_kind file_kind = {
	.input = REC_FILE,
	.output = { REC_FILE, REC_FILE },
	.answer = REC_REPLY,
	.conclude = conclude,
};

int
verb_have(struct session *s, json_t *args, struct err *e)
{
	struct file_spec f = { 0 };

	if (parse_path(args, "path", f.path, e) == -1 ||
	    parse_hash(args, &f, e) == -1)
		return -1;
	return start(s, &f, files_have, false, e);
}

int
verb_push(struct session *s, json_t *args, struct err *e)
{
	struct file_spec f = { 0 };

	if (parse_path(args, "path", f.path, e) == -1 ||
	    parse_pushed(args, &f, e) == -1)
		return -1;
	return start(s, &f, files_push, true, e);
}

int
verb_pull(struct session *s, json_t *args, struct err *e)
{
	struct file_spec f = { 0 };

	if (parse_path(args, "path", f.path, e) == -1)
		return -1;
	return start(s, &f, files_pull, false, e);
}

static int
start(struct session *s, const struct file_spec *f,
    int (*call)(const void *, int), bool has_input, struct err *e)
{
	struct child_spec spec = { .call = call, .call_arg = f };

	return order_start(s, &file_kind, &spec, 0, has_input, e);
}

static int
parse_path(json_t *args, const char *field, char path[PATH_MAX], struct err *e)
{
	const char *text;

	if (json_get_string(args, field, PATH_MAX - 1, &text, e) == -1)
		return -1;
	if (*text != '/')
		return err_set(e, ERR_USAGE, "%s is not an absolute path",
		    text);
	snprintf(path, PATH_MAX, "%s", text);
	return 0;
}

static int
parse_hash(json_t *args, struct file_spec *f, struct err *e)
{
	const char *hex;
	size_t n;

	if (json_opt_string(args, "hash", 2 * FILES_HASH_SIZE, NULL, &hex, e) ==
	    -1)
		return -1;
	if (hex == NULL)
		return 0;
	if (sodium_hex2bin(f->hash, sizeof(f->hash), hex, strlen(hex), NULL, &n,
		NULL) == -1 ||
	    n != sizeof(f->hash))
		return err_set(e, ERR_PROTOCOL,
		    "the hash is not 64 hexadecimal digits");
	f->has_hash = true;
	return 0;
}

static int
parse_pushed(json_t *args, struct file_spec *f, struct err *e)
{
	const char *type, *target;
	int64_t mode;

	if (json_opt_string(args, "type", 8, "file", &type, e) == -1 ||
	    json_opt_int(args, "mode", 0, 07777, 0644, &mode, e) == -1 ||
	    json_opt_int(args, "mtime", 0, INT64_MAX / 2, -1, &f->mtime_s, e) ==
		-1 ||
	    json_opt_int(args, "size", 0, SIZE_MAX_PUSHED, 0, &f->size, e) ==
		-1 ||
	    json_opt_string(args, "target", PATH_MAX - 1, "", &target, e) == -1)
		return -1;
	f->mode = (mode_t)mode;
	snprintf(f->target, sizeof(f->target), "%s", target);
	for (size_t i = 0; i < nitems(type_names); i++)
		if (strcmp(type_names[i], type) == 0) {
			f->type = (enum file_type)i;
			return f->type == FILE_PLAIN ? parse_hash(args, f, e) :
						       0;
		}
	return err_set(e, ERR_USAGE, "push takes a file, dir or link, not %s",
	    type);
}

static json_t *
conclude(const struct job_result *result, struct err *e)
{
	json_t *report;

	if (result->report_size == 0) {
		err_set(e, ERR_LOCAL, "the transfer was broken off");
		return NULL;
	}
	report = json_parse_object(result->report, result->report_size,
	    JOB_REPORT_MAX, e);
	if (report == NULL || json_object_get(report, "code") == NULL)
		return report;
	json_decref(report);
	proto_parse_error(result->report, result->report_size, e);
	return NULL;
}
