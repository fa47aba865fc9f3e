/*
 * nodeset.h: sets of node names, written as web[01-20,33],db1!web[07-09].
 *
 * An expression is read strictly from left to right, without precedence:
 * ',' union, '!' difference, '&' intersection, '^' symmetric difference.
 * @role stands for the nodes of a role, @* for every node; '*' and '?' match
 * known names.  A set is sorted and unique, and holds ranges as ranges: a
 * million names cost what their ranges cost.  Numbers are told apart by
 * their zeros: node1, node01 and node001 are three nodes.
 */
#ifndef MUSTER_NODESET_H
#define MUSTER_NODESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define NODESET_MAX	 1000000 /* names in one set */
#define NODESET_NAME_MAX 255	 /* bytes of one name */
#define NODESET_DIMS	 16	 /* numbers in one name that fold */

struct nodeset;
struct grid;

enum nodeset_op {
	NODESET_UNION,
	NODESET_DIFFERENCE,
	NODESET_INTERSECTION,
	NODESET_XOR
};

/*
 * What the cluster knows.  With a resolver each name of an expression, also
 * an excluded one, must be known, or it is ERR_NO_TARGET with the closest
 * known name; a wildcard must match something.  Without one (NULL), names
 * are only text, and roles are refused.
 */
struct nodeset_resolver {
	void *arg;
	/* Adds (nodeset_add) the nodes of a role, of all roles for NULL; an
	 * unknown role is ERR_NO_TARGET. */
	int (*members)(void *arg, const char *role, struct nodeset *,
	    struct err *);
	/* The name of the node with this IP address ("10.0.0.7", "::1",
	 * "[::1]:7400"), borrowed until the next call; NULL: none has it.
	 * The member itself may be NULL. */
	const char *(*address)(void *arg, const char *text);
	bool allow_unknown; /* unknown names stay in, as they are */
};

/* An empty set.  NULL when out of memory. */
struct nodeset *nodeset_new(void);
void nodeset_free(struct nodeset *);

/* Evaluates one expression into a new set.  Blank text is the empty set.
 * ERR_USAGE for what is not an expression. */
int nodeset_parse(const char *text, const struct nodeset_resolver *,
    struct nodeset **, struct err *);

/* The union of n expressions, each read by itself: the words of a list. */
int nodeset_parse_list(const char *const *texts, size_t n,
    const struct nodeset_resolver *, struct nodeset **, struct err *);

/* Adds one name, which is data: no ranges, roles or wildcards are seen. */
int nodeset_add(struct nodeset *, const char *name, struct err *);

/* a = a OP b.  On failure a is as before, but for a union, where it may hold
 * a part of b. */
int nodeset_combine(struct nodeset *a, enum nodeset_op, const struct nodeset *b,
    struct err *);

/*
 * Additions and unions wait, so that many cost little; the next question
 * merges what waits.  Those that cannot fail (count, has, iter_init) end the
 * program when memory lacks for that: a daemon settles the set before them.
 */
int nodeset_settle(const struct nodeset *, struct err *);

size_t nodeset_count(const struct nodeset *);
bool nodeset_has(const struct nodeset *, const char *name);

/* The canonical text, "db1,web[01-06,10]", items parted by `sep` (","), in
 * *text: malloc'ed, the caller's. */
int nodeset_fold(const struct nodeset *, const char *sep, char **text,
    struct err *);

/* The same with @role for each of n roles whose nodes are all in the set:
 * the one with the most nodes first, none that shares a node with one
 * before. */
int nodeset_fold_roles(const struct nodeset *, const struct nodeset_resolver *,
    const char *const *roles, size_t n, const char *sep, char **text,
    struct err *);

/*
 * Names one by one, in natural order.  Storage is the caller's, nothing to
 * free; the set must not change meanwhile.  The returned name is valid until
 * the next call; NULL at the end.
 */
struct nodeset_iter {
	const struct nodeset *set;
	size_t pattern; /* which group of names */
	bool started;	/* within that group */
	const struct grid *grid[NODESET_DIMS];
	size_t span[NODESET_DIMS];     /* odometer: span of each grid, */
	uint64_t number[NODESET_DIMS]; /* and number within it */
	char name[NODESET_NAME_MAX + 1];
};
void nodeset_iter_init(struct nodeset_iter *, const struct nodeset *);
const char *nodeset_iter_next(struct nodeset_iter *);

#endif
