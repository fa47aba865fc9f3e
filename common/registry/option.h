/*
 * option.h: values that people set, by name: one table row each says its
 * type, range, default, unit and help.  Settings, and the options of roles,
 * sites and nodes, are such tables; a value is a typed field of a struct.
 */
#ifndef MUSTER_OPTION_H
#define MUSTER_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/err.h"

#define OPTION_TEXT_MAX 2048 /* longest value, with its NUL */

/* The C type of the field, and what text is taken. */
enum option_type {
	OPTION_BOOL,	  /* int64_t 0, 1: on|off, yes|no, true|false, 1|0 */
	OPTION_COUNT,	  /* int64_t: a whole number in [min, max] */
	OPTION_DURATION,  /* int64_t ms: 500ms, 30s, 5m, 1h, 90d */
	OPTION_SIZE,	  /* int64_t bytes: 512, 64K, 100M */
	OPTION_RATE,	  /* struct rate: 10/s, 600/m, 10/s,burst=50 */
	OPTION_BANDWIDTH, /* struct rate of bytes: 1M/s, 1M/s,burst=8M */
	OPTION_WORD,	  /* int64_t: index into `words` */
	OPTION_TEXT,	  /* char[]: printable; checked by `check` */
	OPTION_LIST	  /* char[]: items split by space or comma, stored with
			  * one space between; each checked by `check` */
};

/* So many in each period, of which so many may come at once. */
struct rate {
	int64_t n; /* first: a word stands for it; 0: no limit */
	int64_t per_ms;
	int64_t burst; /* 0: not said */
};

struct option {
	const char *name;
	enum option_type type;
	size_t offset, size; /* of the field; OPTION_FIELD() */
	int64_t min, max;    /* of numbers; items of lists */
	const char *fallback;
	const char *words; /* WORD: "common|combined|json" */
	/* A word taken beside the type ("auto", "off", "none"); the field is
	 * then word_value, or "" if it is text. */
	const char *word;
	int64_t word_value;
	int (*check)(const char *text, struct err *);
	bool restart; /* takes effect at the program's next start */
	const char *unit, *help;
};

#define OPTION_FIELD(type, member) \
	offsetof(struct type, member), sizeof(((struct type *)0)->member)

/* A row: the field, then name, range, default and help, and what else there
 * is to say (.word = "none"). */
#define OPTION_ROW(type_, unit_, tag, member, name_, lo, hi, def, help_, ...) \
	{                                                                     \
		.name = (name_), .type = (type_), OPTION_FIELD(tag, member),  \
		.min = (lo), .max = (hi), .fallback = (def), .unit = (unit_), \
		.help = (help_), __VA_ARGS__                                  \
	}

struct option_table {
	const char *what; /* "setting", "role option" */
	const struct option *rows;
	size_t n;
};

/* The row, or NULL and ERR_USAGE with a "did you mean". */
const struct option *option_find(const struct option_table *, const char *name,
    struct err *);

/* Sets every field to its default. */
void option_defaults(const struct option_table *, void *object);

/* Checks a value and stores it; ERR_USAGE with the rule that it broke. */
int option_set(const struct option_table *, void *object, const char *name,
    const char *text, struct err *);

/* The field as canonical text: what option_set() takes. */
void option_text(const struct option *, const void *object,
    char text[OPTION_TEXT_MAX]);
bool option_is_default(const struct option *, const void *object);

/* "1..65535", "on|off", "500ms..1h, or none": the rule, for help. */
void option_rule(const struct option *, char *buf, size_t size);

/* The fields that are not at their default, as an object of strings (the
 * caller's), and back; unknown names are skipped (a newer master's). */
json_t *option_to_json(const struct option_table *, const void *object);
int option_from_json(const struct option_table *, void *object, const json_t *,
    struct err *);

#endif
