/*
 * fuzz_exec_request.c: the arguments of the verb exec.  What is accepted has
 * one command, and nothing in it that a child could not be given.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/net/proto.h"
#include "nodeagent/exec_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void
check(const struct exec_request *r)
{
	const struct child_spec *spec = &r->spec;

	if ((spec->argv == NULL) == (spec->shell == NULL))
		abort();
	if (spec->argv != NULL && spec->argv[0] == NULL)
		abort();
	if (spec->cwd != NULL && spec->cwd[0] != '/')
		abort();
	if (r->timeout_ms < 0)
		abort();
	for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++)
		if (strchr(spec->env[i], '=') == NULL || spec->env[i][0] == '=')
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct exec_request r;
	struct err e;
	json_t *args;

	args = json_parse_object(input, size, PROTO_RECORD_MAX, &e);
	if (args == NULL)
		return 0;
	if (exec_request_parse(args, &r, &e) == 0)
		check(&r);
	exec_request_fini(&r);
	json_decref(args);
	return 0;
}
