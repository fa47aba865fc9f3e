/* outcome.c: see outcome.h. */
#include "clusterctl/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clusterctl/output.h"
#include "clusterctl/xalloc.h"
#include "common/base/io.h"
#include "common/nodeset/nodeset.h"

/* The later of two rows is the worse where their weights differ. */
static const struct {
	const char *word;
	int exit_status;
	int weight;
	bool failure;
	const char *sentence; /* before why.text, if there is one */
} outcomes[] = {
	[OUTCOME_NONE] = { "none", 0, 0, false, "has not ended" },
	[OUTCOME_OK] = { "ok", 0, 0, false, "finished" },
	[OUTCOME_FAILED] = { "failed", ERR_COMMAND, 2, true, "" },
	[OUTCOME_REFUSED] = { "refused", ERR_COMMAND, 3, true, "failed there" },
	[OUTCOME_TIMEOUT] = { "timeout", ERR_TIMEOUT, 4, true, "timed out" },
	[OUTCOME_LOST] = { "lost", ERR_UNREACHABLE, 6, true,
	    "delivered, result unknown" },
	[OUTCOME_UNREACHABLE] = { "unreachable", ERR_UNREACHABLE, 5, true,
	    "not delivered: unreachable" },
	[OUTCOME_DENIED] = { "denied", ERR_DENIED, 7, true,
	    "not delivered: denied" },
	[OUTCOME_LOCAL] = { "local", ERR_LOCAL, 8, true,
	    "failed on this machine" },
	[OUTCOME_SKIPPED] = { "skipped", ERR_BUDGET, 1, false, "not started" },
	[OUTCOME_CANCELLED] = { "cancelled", 130, 9, false, "interrupted" },
};
_Static_assert(nitems(outcomes) == N_OUTCOMES, "a row per outcome");

/* One line of the summary: a target's name and what it will say. */
struct line {
	const char *name;
	enum outcome outcome;
	char *sentence;
	size_t index;
};

static int compare_lines(const void *, const void *);
static void print_group(const struct line *, size_t n);

const char *
outcome_word(enum outcome o)
{
	return outcomes[o].word;
}

int
outcome_exit_status(enum outcome o)
{
	return outcomes[o].exit_status;
}

enum outcome
outcome_worse(enum outcome a, enum outcome b)
{
	return outcomes[b].weight > outcomes[a].weight ? b : a;
}

bool
outcome_is_failure(enum outcome o)
{
	return outcomes[o].failure;
}

enum outcome
outcome_of_err(const struct err *why, bool delivered)
{
	int status = err_exit_status(why->code);

	if (status == ERR_DENIED)
		return OUTCOME_DENIED;
	if (delivered)
		return OUTCOME_LOST;
	return why->code == ERR_LOCAL ? OUTCOME_LOCAL : OUTCOME_UNREACHABLE;
}

enum outcome
outcome_of_answer(const struct err *why)
{
	if (why->code == ERR_LATE)
		return OUTCOME_UNREACHABLE;
	switch (err_exit_status(why->code)) {
	case ERR_DENIED:
		return OUTCOME_DENIED;
	case ERR_TIMEOUT:
		return OUTCOME_TIMEOUT;
	default:
		return OUTCOME_REFUSED;
	}
}

void
result_sentence(const struct result *r, char *buf, size_t size)
{
	const char *abbrev = sigabbrev_np(r->signal);
	const char *sentence = outcomes[r->outcome].sentence;

	if (r->outcome == OUTCOME_DENIED && r->begun)
		sentence = "delivered, then ended: denied";
	if (r->outcome == OUTCOME_FAILED && r->signal > 0)
		snprintf(buf, size, "killed by signal %d%s%s", r->signal,
		    abbrev != NULL ? " SIG" : "", abbrev != NULL ? abbrev : "");
	else if (r->outcome == OUTCOME_FAILED)
		snprintf(buf, size, "exited with status %d", r->exit);
	else
		snprintf(buf, size, "%s%s%s", sentence,
		    r->why.text[0] != '\0' ? ": " : "", r->why.text);
}

void
outcome_summary(size_t n,
    const struct result *(*at)(size_t i, const char **name, void *arg),
    void *arg)
{
	struct line *lines = xcalloc(n, sizeof(*lines));
	size_t n_lines = 0, from = 0;
	char sentence[400];

	for (size_t i = 0; i < n; i++) {
		struct line *l = &lines[n_lines];
		const struct result *r = at(i, &l->name, arg);

		if (r->outcome == OUTCOME_OK || r->outcome == OUTCOME_NONE)
			continue;
		result_sentence(r, sentence, sizeof(sentence));
		l->outcome = r->outcome;
		l->sentence = xstrdup(sentence);
		l->index = i;
		n_lines++;
	}
	if (n_lines > 0)
		qsort(lines, n_lines, sizeof(*lines), compare_lines);
	for (size_t i = 1; i <= n_lines; i++) {
		if (i < n_lines &&
		    strcmp(lines[i].sentence, lines[from].sentence) == 0)
			continue;
		print_group(&lines[from], i - from);
		from = i;
	}
	for (size_t i = 0; i < n_lines; i++)
		free(lines[i].sentence);
	free(lines);
}

static int
compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int c = (int)x->outcome - (int)y->outcome;

	if (c == 0)
		c = strcmp(x->sentence, y->sentence);
	if (c == 0)
		c = x->index < y->index ? -1 : 1;
	return c;
}

static void
print_group(const struct line *l, size_t n)
{
	struct nodeset *set = nodeset_new();
	char *text = NULL;
	struct err e;

	for (size_t i = 0; set != NULL && i < n; i++)
		nodeset_add(set, l[i].name, &e);
	if (set != NULL && nodeset_fold(set, ",", &text, &e) == 0) {
		if (n == 1)
			output_note("%s: %s", text, l->sentence);
		else
			output_note("%s (%zu): %s", text, n, l->sentence);
	}
	free(text);
	nodeset_free(set);
}
