/*
 * files.h: looking at, taking in and giving out files, in a process of its
 * own (child_spec.call): a dead network disk, a fifo or a slow fsync holds up
 * that process and nothing else.
 *
 * Each reads file bytes from descriptor 0 or writes them to 1, and reports
 * one JSON object: the verb's answer, or an err (proto.h).
 */
#ifndef NODEAGENT_FILES_H
#define NODEAGENT_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

#define FILES_HASH_SIZE 32 /* BLAKE2b-256 */

enum file_type { FILE_PLAIN, FILE_DIRECTORY, FILE_LINK };

struct file_spec {
	char path[PATH_MAX]; /* absolute */
	bool has_hash;
	uint8_t hash[FILES_HASH_SIZE];
	/* push */
	enum file_type type;
	mode_t mode;
	int64_t mtime_s, size;
	char target[PATH_MAX]; /* of a link */
};

/* For child_spec.call; arg is a file_spec.  Each returns 0. */
int files_have(const void *arg, int report);
int files_push(const void *arg, int report);
int files_pull(const void *arg, int report);

#endif
