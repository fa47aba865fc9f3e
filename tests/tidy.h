/*
 * tidy.h: put before each source when clang-tidy reads it (lint.sh).  The
 * analyzer cannot look into err.c to see that these always fail, and would
 * follow a thousand paths that do not exist.
 */
#ifndef MUSTER_TIDY_H
#define MUSTER_TIDY_H

#include "common/base/err.h"

#define err_set(...)   (err_set(__VA_ARGS__), -1)
#define err_errno(...) (err_errno(__VA_ARGS__), -1)
#define err_wrap(...)  (err_wrap(__VA_ARGS__), -1)

#endif
