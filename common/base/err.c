/* err.c: see err.h. */
#include "common/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	int code;
	int exit_status;
	const char *word;
} err_codes[] = {
	{ ERR_NONE,        0, "ok"          },
	{ ERR_COMMAND,     1, "failed"      },
	{ ERR_USAGE,       2, "usage"       },
	{ ERR_NO_TARGET,   3, "no-target"   },
	{ ERR_UNREACHABLE, 4, "unreachable" },
	{ ERR_TIMEOUT,     5, "timeout"     },
	{ ERR_BUDGET,      6, "budget"      },
	{ ERR_DENIED,      7, "denied"      },
	{ ERR_LOCAL,       8, "local"       },
	{ ERR_EXPIRED,     7, "expired"     },
	{ ERR_NOT_YET,     7, "not-yet"     },
	{ ERR_REVOKED,     7, "revoked"     },
	{ ERR_STRANGER,    7, "stranger"    },
	{ ERR_CONFLICT,    2, "conflict"    },
	{ ERR_BUSY,        8, "busy"        },
	{ ERR_PROTOCOL,    4, "protocol"    },
	{ ERR_VERSION,     8, "version"     },
	{ ERR_LOCKED,      8, "locked"      },
	{ ERR_CORRUPT,     8, "corrupt"     },
	{ ERR_PENDING,     7, "pending"     },
	{ ERR_LATE,        4, "late"        },
};
/* clang-format on */

static void err_clean(struct err *);

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	char text[sizeof(e->text)];
	va_list ap;

	/* By way of a copy: an argument may be e->text itself. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e->code = code;
	memcpy(e->text, text, sizeof(text));
	err_clean(e);
	return -1;
}

int
err_errno(struct err *e, int code, const char *fmt, ...)
{
	char why[96], text[sizeof(e->text)];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(e, code, "%.140s: %s", text,
	    strerror_r(saved, why, sizeof(why)));
	errno = saved;
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char before[120], rest[sizeof(e->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(before, sizeof(before), fmt, ap);
	va_end(ap);
	memcpy(rest, e->text, sizeof(rest));
	return err_set(e, e->code, "%s: %s", before, rest);
}

int
err_exit_status(int code)
{
	for (size_t i = 0; i < sizeof(err_codes) / sizeof(err_codes[0]); i++)
		if (err_codes[i].code == code)
			return err_codes[i].exit_status;
	return ERR_LOCAL;
}

const char *
err_word(int code)
{
	for (size_t i = 0; i < sizeof(err_codes) / sizeof(err_codes[0]); i++)
		if (err_codes[i].code == code)
			return err_codes[i].word;
	return "unknown";
}

/* A sentence may quote what a stranger sent: no byte of it may move a
 * terminal's cursor or forge a log line. */
static void
err_clean(struct err *e)
{
	for (char *p = e->text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}
