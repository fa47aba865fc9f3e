/* expr.c: nodeset_parse, expressions from left to right. */
#include "common/nodeset/nodeset.h"

#include <stdlib.h>
#include <string.h>

#include "common/nodeset/pattern.h"
#include "common/nodeset/resolve.h"
#include "common/nodeset/set.h"

#define OPERATORS ",!&^"
#define SPACES	  " \t\n"

static const struct {
	char sign;
	enum nodeset_op op;
} operators[] = {
	{ ',', NODESET_UNION },
	{ '!', NODESET_DIFFERENCE },
	{ '&', NODESET_INTERSECTION },
	{ '^', NODESET_XOR },
};

/* One operand of an expression, without spaces around. */
struct operand {
	enum nodeset_op op;
	const char *text;
	size_t len;
};

static int add_expression(struct nodeset *, const char *text, struct resolve *,
    struct err *);
static int evaluate(const char *text, struct resolve *, struct nodeset *,
    struct err *);
static const char *take_operand(const char *p, struct operand *);
static enum nodeset_op operator_of(char sign);
static int apply(const struct operand *, struct resolve *, struct nodeset *,
    struct err *);
static int operand_nodes(const struct operand *, struct resolve *,
    struct nodeset *, struct err *);
static int role_nodes(const struct operand *, struct resolve *,
    struct nodeset *, struct err *);
static int mask_nodes(const struct operand *, struct resolve *,
    const struct nodeset *masks, struct nodeset *, struct err *);
static int add_names(struct nodeset *, const char *text, size_t len,
    struct err *);

int
nodeset_parse(const char *text, const struct nodeset_resolver *resolver,
    struct nodeset **out, struct err *e)
{
	return nodeset_parse_list(&text, 1, resolver, out, e);
}

int
nodeset_parse_list(const char *const *texts, size_t n,
    const struct nodeset_resolver *resolver, struct nodeset **out,
    struct err *e)
{
	struct resolve r = { resolver, NULL };
	struct nodeset *s;
	int rv = 0;

	if ((s = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	for (size_t i = 0; rv == 0 && i < n; i++)
		rv = add_expression(s, texts[i], &r, e);
	if (rv == 0)
		rv = nodeset_settle(s, e);
	resolve_fini(&r);
	if (rv == -1)
		nodeset_free(s);
	else
		*out = s;
	return rv;
}

/* An expression of unions alone needs no set of its own. */
static int
add_expression(struct nodeset *s, const char *text, struct resolve *r,
    struct err *e)
{
	struct nodeset *own;
	int rv = -1;

	if (text[strspn(text, SPACES)] == '\0')
		return 0;
	if (strpbrk(text, "!&^") == NULL)
		return evaluate(text, r, s, e);
	if ((own = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (evaluate(text, r, own, e) == 0)
		rv = nodeset_combine(s, NODESET_UNION, own, e);
	nodeset_free(own);
	return rv;
}

static int
evaluate(const char *text, struct resolve *r, struct nodeset *s, struct err *e)
{
	struct operand o = { .op = NODESET_UNION };
	const char *p = text;

	for (;;) {
		p = take_operand(p, &o);
		if (o.len == 0)
			return err_set(e, ERR_USAGE,
			    "bad node set '%.64s': a name is missing %s", text,
			    *p != '\0' ? "before an operator" : "at its end");
		if (apply(&o, r, s, e) == -1)
			return -1;
		if (*p == '\0')
			return 0;
		o.op = operator_of(*p++);
	}
}

/* Returns where it ends: at an operator outside of brackets, or the NUL. */
static const char *
take_operand(const char *p, struct operand *o)
{
	const char *end;

	p += strspn(p, SPACES);
	for (end = p; *end != '\0' && strchr(OPERATORS, *end) == NULL; end++) {
		const char *close = *end == '[' ? strchr(end, ']') : end;

		if (close == NULL) {
			end += strlen(end);
			break;
		}
		end = close;
	}
	o->text = p;
	o->len = (size_t)(end - p);
	while (o->len > 0 && strchr(SPACES, p[o->len - 1]) != NULL)
		o->len--;
	return end;
}

static enum nodeset_op
operator_of(char sign)
{
	size_t i = 0;

	while (operators[i].sign != sign)
		i++;
	return operators[i].op;
}

static int
apply(const struct operand *o, struct resolve *r, struct nodeset *s,
    struct err *e)
{
	struct nodeset *nodes;
	int rv = -1;

	/* The many names of a long list go straight in. */
	if (r->resolver == NULL && o->op == NODESET_UNION && *o->text != '@')
		return add_names(s, o->text, o->len, e);
	if ((nodes = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (operand_nodes(o, r, nodes, e) == 0 && nodeset_settle(nodes, e) == 0)
		rv = nodeset_combine(s, o->op, nodes, e);
	nodeset_free(nodes);
	return rv;
}

static int
operand_nodes(const struct operand *o, struct resolve *r, struct nodeset *nodes,
    struct err *e)
{
	struct nodeset *names;
	int rv = -1;

	if (*o->text == '@')
		return role_nodes(o, r, nodes, e);
	if (r->resolver == NULL)
		return add_names(nodes, o->text, o->len, e);
	if ((names = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (add_names(names, o->text, o->len, e) == -1 ||
	    nodeset_settle(names, e) == -1)
		rv = -1;
	else if (memchr(o->text, '*', o->len) != NULL ||
	    memchr(o->text, '?', o->len) != NULL)
		rv = mask_nodes(o, r, names, nodes, e);
	else
		rv = resolve_names(r, names, o->op == NODESET_DIFFERENCE, nodes,
		    e);
	nodeset_free(names);
	return rv;
}

static int
role_nodes(const struct operand *o, struct resolve *r, struct nodeset *nodes,
    struct err *e)
{
	struct nodeset *roles;
	int rv = -1;

	if (r->resolver == NULL)
		return err_set(e, ERR_USAGE,
		    "'%.*s': roles are known only within a cluster",
		    (int)(o->len < 64 ? o->len : 64), o->text);
	if (o->len == 2 && o->text[1] == '*')
		return resolve_all(r, nodes, e);
	if (o->len == 1)
		return err_set(e, ERR_USAGE, "'@' lacks the name of a role");
	if ((roles = nodeset_new()) == NULL)
		return err_set(e, ERR_LOCAL, "out of memory");
	if (add_names(roles, o->text + 1, o->len - 1, e) == 0 &&
	    nodeset_settle(roles, e) == 0)
		rv = resolve_roles(r, roles, nodes, e);
	nodeset_free(roles);
	return rv;
}

static int
mask_nodes(const struct operand *o, struct resolve *r,
    const struct nodeset *masks, struct nodeset *nodes, struct err *e)
{
	if (resolve_masks(r, masks, nodes, e) == -1 ||
	    nodeset_settle(nodes, e) == -1)
		return -1;
	if (nodeset_count(nodes) > 0 || r->resolver->allow_unknown)
		return 0;
	return err_set(e, ERR_NO_TARGET, "no node matches '%.*s'",
	    (int)(o->len < 64 ? o->len : 64), o->text);
}

static int
add_names(struct nodeset *s, const char *text, size_t len, struct err *e)
{
	char pattern[NODESET_NAME_MAX + 1];
	struct grid *g;
	int rv;

	if (pattern_parse(text, len, pattern, &g, e) == -1)
		return -1;
	rv = set_add(s, pattern, g, e);
	grid_unref(g);
	return rv;
}
