/* opts.c: see opts.h. */
#include "clusterctl/opts.h"

#include <stdio.h>
#include <string.h>

#include "common/base/io.h"
#include "common/base/name.h"
#include "common/base/text.h"

#define HELP_LEFT  26 /* columns of --help */
#define HELP_RIGHT 79

#define NAMES_MAX 96 /* options of one command, for suggestions */

/* A row and the struct that it fills. */
struct match {
	const struct opt *row;
	char *into;
};

static void help_text(const char *text, int used);
static int set_initial(const struct opt_line *, struct err *);
static int parse_long(const struct opt_line *, char **argv, int argc, int *i,
    int n_args, struct err *);
static int parse_short(const struct opt_line *, char **argv, int argc, int *i,
    int n_args, struct err *);
static int find_long(const struct opt_line *, const char *name, size_t len,
    struct match *, struct err *);
static int find_short(const struct opt_line *, char letter, struct match *,
    struct err *);
static int refuse_unknown(const struct opt_line *, const char *name,
    struct err *);
static int take(const struct match *, struct opt_word *, struct err *);
static int take_value(const struct match *, const char *value, struct err *);
static int take_choice(const struct opt *, const char *value, void *field,
    struct err *);
static bool takes_value(const struct opt *);
static void *field_of(const struct match *);

int
opts_parse(const struct opt_line *o, int argc, char **argv, int *n_args,
    struct err *e)
{
	bool ended = false;
	int n = 0;

	if (set_initial(o, e) == -1)
		return -1;
	for (int i = 0; i < argc; i++) {
		char *word = argv[i];

		if (!ended && strcmp(word, "--") == 0) {
			ended = true;
		} else if (!ended && strncmp(word, "--", 2) == 0) {
			if (parse_long(o, argv, argc, &i, n, e) == -1)
				return -1;
		} else if (!ended && word[0] == '-' && word[1] != '\0') {
			if (parse_short(o, argv, argc, &i, n, e) == -1)
				return -1;
		} else {
			argv[n++] = word;
			if (o->n_leading != NULL && n > o->n_leading(o->opts))
				ended = true;
		}
	}
	*n_args = n;
	return 0;
}

void
opts_help(const struct opt_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->rows[i];
		char letter[4] = "  ", text[240];
		int used;

		if (row->letter != '\0')
			snprintf(letter, sizeof(letter), "-%c", row->letter);
		used = printf("  %s%s%s%s%s", letter,
		    row->name == NULL	    ? "" :
			row->letter != '\0' ? ", --" :
					      "  --",
		    row->name != NULL ? row->name : "",
		    row->arg != NULL ? " " : "",
		    row->arg != NULL ? row->arg : "");
		snprintf(text, sizeof(text), "%s%s%s%s", row->help,
		    row->initial != NULL ? " (default " : "",
		    row->initial != NULL ? row->initial : "",
		    row->initial != NULL ? ")" : "");
		help_text(text, used);
	}
}

/* Fills the columns from HELP_LEFT to HELP_RIGHT. */
static void
help_text(const char *text, int used)
{
	if (used >= HELP_LEFT)
		used = printf("\n") - 1;
	while (*text != '\0') {
		size_t len = strlen(text);

		if (len > HELP_RIGHT - HELP_LEFT) {
			len = HELP_RIGHT - HELP_LEFT;
			while (len > 1 && text[len] != ' ')
				len--;
		}
		printf("%*s%.*s\n", HELP_LEFT - used, "", (int)len, text);
		text += len + strspn(text + len, " ");
		used = 0;
	}
}

const struct opt *
opts_find(const struct opt_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->rows[i].name != NULL &&
		    strcmp(set->rows[i].name, name) == 0)
			return &set->rows[i];
	return NULL;
}

static int
set_initial(const struct opt_line *o, struct err *e)
{
	for (size_t h = 0; h < o->n_homes; h++) {
		const struct opt_set *set = o->homes[h].set;

		for (size_t i = 0; i < set->n; i++) {
			struct match m = { &set->rows[i], o->homes[h].into };

			if (m.row->initial != NULL &&
			    take_value(&m, m.row->initial, e) == -1)
				return -1;
		}
	}
	return 0;
}

/* argv[*i] is "--name" or "--name=value"; *i moves over a value taken. */
static int
parse_long(const struct opt_line *o, char **argv, int argc, int *i, int n_args,
    struct err *e)
{
	const char *name = argv[*i] + 2;
	size_t len = strcspn(name, "=");
	struct opt_word w = { .attached = name[len] == '=', .n_args = n_args };
	struct match m;

	if (find_long(o, name, len, &m, e) == -1)
		return -1;
	if (w.attached)
		w.value = name + len + 1;
	else if (*i + 1 < argc)
		w.value = argv[*i + 1];
	if (take(&m, &w, e) == -1)
		return -1;
	if (w.attached && !w.used)
		return err_set(e, ERR_USAGE, "--%s takes no value",
		    m.row->name);
	if (w.used && !w.attached)
		++*i;
	return 0;
}

/* argv[*i] is "-x", "-xvalue" or a bundle of flags "-xyz". */
static int
parse_short(const struct opt_line *o, char **argv, int argc, int *i, int n_args,
    struct err *e)
{
	for (const char *p = argv[*i] + 1; *p != '\0'; p++) {
		struct opt_word w = { .attached = p[1] != '\0',
			.n_args = n_args };
		struct match m;

		if (find_short(o, *p, &m, e) == -1)
			return -1;
		if (w.attached)
			w.value = p + 1;
		else if (*i + 1 < argc)
			w.value = argv[*i + 1];
		if (take(&m, &w, e) == -1)
			return -1;
		if (w.used) {
			*i += w.attached ? 0 : 1;
			return 0;
		}
	}
	return 0;
}

static int
find_long(const struct opt_line *o, const char *name, size_t len,
    struct match *m, struct err *e)
{
	const struct opt *other = NULL;
	char text[64];

	m->row = NULL;
	for (size_t h = 0; h < o->n_homes; h++) {
		const struct opt_set *set = o->homes[h].set;

		for (size_t i = 0; i < set->n; i++) {
			const struct opt *row = &set->rows[i];

			if (row->name == NULL ||
			    strncmp(row->name, name, len) != 0)
				continue;
			other = m->row;
			m->row = row;
			m->into = o->homes[h].into;
			if (row->name[len] == '\0')
				return 0;
		}
	}
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	if (m->row == NULL || len == 0)
		return refuse_unknown(o, text, e);
	if (other != NULL)
		return err_set(e, ERR_USAGE,
		    "option --%s may mean --%s or --%s", text, other->name,
		    m->row->name);
	return 0;
}

static int
find_short(const struct opt_line *o, char letter, struct match *m,
    struct err *e)
{
	for (size_t h = 0; h < o->n_homes; h++) {
		const struct opt_set *set = o->homes[h].set;

		for (size_t i = 0; i < set->n; i++) {
			if (set->rows[i].letter != letter)
				continue;
			m->row = &set->rows[i];
			m->into = o->homes[h].into;
			return 0;
		}
	}
	return err_set(e, ERR_USAGE, "unknown option -%c (see --help)", letter);
}

static int
refuse_unknown(const struct opt_line *o, const char *name, struct err *e)
{
	const char *names[NAMES_MAX], *near;
	size_t n = 0;

	for (size_t h = 0; h < o->n_homes; h++)
		for (size_t i = 0; i < o->homes[h].set->n; i++)
			if (n < nitems(names) &&
			    o->homes[h].set->rows[i].name != NULL)
				names[n++] = o->homes[h].set->rows[i].name;
	near = name_suggest(name, names, n);
	if (near != NULL)
		return err_set(e, ERR_USAGE,
		    "unknown option --%s; did you mean --%s?", name, near);
	return err_set(e, ERR_USAGE, "unknown option --%s (see --help)", name);
}

static int
take(const struct match *m, struct opt_word *w, struct err *e)
{
	if (m->row->type == OPT_HOOK)
		return m->row->hook(m->into, w, e);
	if (!takes_value(m->row))
		return take_value(m, NULL, e);
	if (w->value == NULL)
		return err_set(e, ERR_USAGE, "--%s needs a value: %s",
		    m->row->name, m->row->arg);
	w->used = true;
	return take_value(m, w->value, e);
}

static int
take_value(const struct match *m, const char *value, struct err *e)
{
	const struct opt *row = m->row;
	struct opt_list *list;
	void *field = field_of(m);
	char what[64];

	snprintf(what, sizeof(what), "--%s", row->name);
	switch (row->type) {
	case OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case OPT_COUNT:
		++*(unsigned *)field;
		return 0;
	case OPT_TEXT:
		*(const char **)field = value;
		return 0;
	case OPT_LIST:
		list = field;
		if (list->n == nitems(list->v))
			return err_set(e, ERR_USAGE,
			    "%s given more than %d times", what, OPT_LIST_MAX);
		list->v[list->n++] = value;
		return 0;
	case OPT_NUMBER:
		return text_parse_u64(what, value, row->min, row->max, field,
		    e);
	case OPT_DURATION:
		return text_parse_duration(what, value, (int64_t)row->max,
		    field, e);
	case OPT_CHOICE:
		return take_choice(row, value, field, e);
	case OPT_HOOK:
		break;
	}
	return 0;
}

static int
take_choice(const struct opt *row, const char *value, void *field,
    struct err *e)
{
	size_t len = strlen(value);

	for (const char *p = row->choices; *p != '\0';) {
		size_t n = strcspn(p, "|");

		if (n == len && strncmp(p, value, n) == 0) {
			*(const char **)field = value;
			return 0;
		}
		p += n + (p[n] == '|');
	}
	return err_set(e, ERR_USAGE, "--%s is one of %s, not '%.40s'",
	    row->name, row->choices, value);
}

static bool
takes_value(const struct opt *row)
{
	return row->type != OPT_FLAG && row->type != OPT_COUNT;
}

static void *
field_of(const struct match *m)
{
	return m->into + m->row->offset;
}
