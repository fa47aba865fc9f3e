/*
 * fuzz_audit.c: a log of any content is verified; whatever an append then
 * makes of it, the lines that verified before still do.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/audit/audit.h"
#include "common/base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int
see_event(uint64_t line, const json_t *event, void *arg)
{
	(void)arg;
	return line == 0 || !json_is_object(event);
}

int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static char path[64];
	struct audit_report before, after;
	struct err e;
	int fd;

	if (sodium_init() == -1)
		abort();
	if (path[0] == '\0')
		snprintf(path, sizeof(path), "/tmp/muster-fuzz-audit-%d",
		    (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || io_write_n(fd, input, size) == -1)
		abort();
	close(fd);
	if (audit_verify(path, &before, &e) == -1 ||
	    audit_each(path, 1, see_event, NULL, &e) == -1)
		abort();
	if (audit_append_soon(path, json_pack("{s:s}", "a", "b"), &e) == 0) {
		if (audit_verify(path, &after, &e) == -1)
			abort();
		if (before.bad_line == 0 &&
		    (after.bad_line != 0 || after.n_lines <= before.n_lines))
			abort();
	} else if (before.bad_line == 0 && !before.torn_tail) {
		abort();
	}
	unlink(path);
	return 0;
}
