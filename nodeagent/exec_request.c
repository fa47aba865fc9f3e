/* exec_request.c: see exec_request.h. */
#include "nodeagent/exec_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/net/proto.h"

#define ARGS_MAX    8192
#define ENV_MAX	    256
#define TIMEOUT_MAX (365LL * 24 * 3600 * 1000)

static int parse_command(json_t *args, struct exec_request *, struct err *);
static int parse_env(json_t *args, struct exec_request *, struct err *);
static int parse_pty(json_t *args, struct exec_request *, struct err *);
static int parse_disconnect(json_t *args, struct exec_request *, struct err *);

int
exec_request_parse(json_t *args, struct exec_request *r, struct err *e)
{
	memset(r, 0, sizeof(*r));
	if (parse_command(args, r, e) == -1 ||
	    json_opt_string(args, "user", 255, NULL, &r->spec.user, e) == -1 ||
	    json_opt_string(args, "cwd", 4095, NULL, &r->spec.cwd, e) == -1 ||
	    json_opt_int(args, "timeout_ms", 0, TIMEOUT_MAX, 0, &r->timeout_ms,
		e) == -1 ||
	    json_opt_bool(args, "stdin", false, &r->input, e) == -1)
		return -1;
	if (r->spec.cwd != NULL && r->spec.cwd[0] != '/')
		return err_set(e, ERR_USAGE, "the directory %s is not absolute",
		    r->spec.cwd);
	if (parse_env(args, r, e) == -1 || parse_pty(args, r, e) == -1)
		return -1;
	return parse_disconnect(args, r, e);
}

void
exec_request_fini(struct exec_request *r)
{
	free(r->argv);
	for (size_t i = 0; r->env != NULL && r->env[i] != NULL; i++)
		free(r->env[i]);
	free(r->env);
}

static int
parse_command(json_t *args, struct exec_request *r, struct err *e)
{
	json_t *argv;
	size_t n;

	if (json_opt_string(args, "shell", PROTO_RECORD_MAX, NULL,
		&r->spec.shell, e) == -1 ||
	    json_opt_strings(args, "argv", ARGS_MAX, PROTO_RECORD_MAX, &argv,
		e) == -1)
		return -1;
	if ((argv == NULL) == (r->spec.shell == NULL))
		return err_set(e, ERR_USAGE,
		    "exec takes a shell line or an argv, and one of them");
	if (argv == NULL)
		return 0;
	n = json_array_size(argv);
	if (n == 0 || *json_string_value(json_array_get(argv, 0)) == '\0')
		return err_set(e, ERR_USAGE, "exec needs a command");
	if ((r->argv = calloc(n + 1, sizeof(*r->argv))) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for the command");
	for (size_t i = 0; i < n; i++)
		r->argv[i] = json_string_value(json_array_get(argv, i));
	r->spec.argv = r->argv;
	return 0;
}

static int
parse_env(json_t *args, struct exec_request *r, struct err *e)
{
	json_t *env = json_object_get(args, "env"); /* borrowed */
	const char *name;
	size_t n = 0;
	json_t *v;

	if (env == NULL || json_is_null(env))
		return 0;
	if (!json_is_object(env) || json_object_size(env) > ENV_MAX)
		return err_set(e, ERR_PROTOCOL,
		    "env is not an object of at most %d strings", ENV_MAX);
	r->env = calloc(json_object_size(env) + 1, sizeof(*r->env));
	if (r->env == NULL)
		return err_set(e, ERR_LOCAL,
		    "out of memory for the environment");
	json_object_foreach (env, name, v) {
		if (!json_is_string(v) || !text_is_env_name(name, strlen(name)))
			return err_set(e, ERR_USAGE,
			    "%s is no name of an environment variable, or "
			    "its value no string",
			    name);
		if (asprintf(&r->env[n++], "%s=%s", name,
			json_string_value(v)) == -1)
			return err_set(e, ERR_LOCAL,
			    "out of memory for the environment");
	}
	r->spec.env = (const char *const *)r->env;
	return 0;
}

static int
parse_pty(json_t *args, struct exec_request *r, struct err *e)
{
	json_t *pty = json_object_get(args, "pty"); /* borrowed */
	int64_t rows, columns;

	if (pty == NULL || json_is_null(pty))
		return 0;
	if (!json_is_object(pty))
		return err_set(e, ERR_PROTOCOL, "pty is not an object");
	if (json_opt_int(pty, "rows", 0, UINT16_MAX, 24, &rows, e) == -1 ||
	    json_opt_int(pty, "cols", 0, UINT16_MAX, 80, &columns, e) == -1 ||
	    json_opt_string(pty, "term", 63, "dumb", &r->pty.term, e) == -1)
		return -1;
	r->pty.rows = (uint16_t)rows;
	r->pty.columns = (uint16_t)columns;
	r->spec.pty = &r->pty;
	return 0;
}

static int
parse_disconnect(json_t *args, struct exec_request *r, struct err *e)
{
	const char *what;

	if (json_opt_string(args, "on_disconnect", 15, "kill", &what, e) == -1)
		return -1;
	r->spec.keep = strcmp(what, "keep") == 0;
	if (!r->spec.keep && strcmp(what, "kill") != 0)
		return err_set(e, ERR_USAGE,
		    "on_disconnect is kill or keep, not %s", what);
	return 0;
}
