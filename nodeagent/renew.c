/* renew.c: see renew.h. */
#include "nodeagent/renew.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/enroll/issue.h"
#include "common/net/identity.h"
#include "nodeagent/agent.h"
#include "nodeagent/call.h"
#include "nodeagent/fetch.h"
#include "nodeagent/master.h"

#define LOOK_S	3600 /* how often at most it is looked whether it is time */
#define RETRY_S 600  /* after a failure */

struct renewal {
	struct agent *agent;
	struct event *due;
	struct call *call;
	size_t master; /* that is being asked: an index of the view */
};

static int64_t wait_s(const struct agent *, int64_t now_s);
static void renewal_due(evutil_socket_t, short, void *);
static void renewal_schedule(struct renewal *, int64_t s);
static void renewal_succeeded(struct renewal *);
static void renewal_ask(struct renewal *);
static void renewal_by_ourselves(struct renewal *);
static void call_done(json_t *reply, const struct err *why, int64_t skew_ms,
    void *arg);
static int take_certificate(struct agent *, json_t *reply, struct err *);
static int store_certificate(struct agent *, const uint8_t *bytes, size_t size,
    struct err *);

static const struct call_handlers renewal_call = { .done = call_done };

struct renewal *
renewal_new(struct agent *a, struct err *e)
{
	struct renewal *r = calloc(1, sizeof(*r));

	if (r == NULL ||
	    (r->due = evtimer_new(a->base, renewal_due, r)) == NULL) {
		err_set(e, ERR_LOCAL, "out of memory for the renewal");
		free(r);
		return NULL;
	}
	r->agent = a;
	renewal_schedule(r, wait_s(a, clock_wall_ms() / 1000));
	return r;
}

void
renewal_free(struct renewal *r)
{
	if (r == NULL)
		return;
	call_cancel(r->call);
	event_free(r->due);
	free(r);
}

void
renewal_look(struct renewal *r)
{
	if (r->call == NULL &&
	    !issue_fits(&r->agent->cert, r->agent->view.roles))
		renewal_schedule(r, 0);
}

/* Until two thirds of its life are over. */
static int64_t
wait_s(const struct agent *a, int64_t now_s)
{
	const struct cert *c = &a->cert;
	int64_t due_s =
	    c->not_before_s + (c->not_after_s - c->not_before_s) / 3 * 2;

	/* A certificate from before a role came lacks what goes with it. */
	if (due_s <= now_s || !issue_fits(c, a->view.roles))
		return 0;
	/* Not longer: the wall clock may be set meanwhile. */
	return due_s - now_s < LOOK_S ? due_s - now_s : LOOK_S;
}

static void
renewal_due(evutil_socket_t fd, short what, void *arg)
{
	struct renewal *r = arg;
	int64_t left_s = wait_s(r->agent, clock_wall_ms() / 1000);

	(void)fd;
	(void)what;
	if (left_s > 0 || !r->agent->view.enrolled) {
		renewal_schedule(r, left_s > 0 ? left_s : LOOK_S);
		return;
	}
	r->master = 0;
	if (r->agent->master != NULL)
		renewal_by_ourselves(r);
	else
		renewal_ask(r);
}

static void
renewal_schedule(struct renewal *r, int64_t s)
{
	/* Nodes that joined together do not come back together. */
	struct timeval tv = { .tv_sec = s + 1 + randombytes_uniform(10) };

	evtimer_add(r->due, &tv);
}

/* With a clock that is months ahead each new certificate is old already. */
static void
renewal_succeeded(struct renewal *r)
{
	renewal_schedule(r, LOOK_S);
	fetch_now(r->agent->fetch);
}

static void
renewal_ask(struct renewal *r)
{
	struct agent *a = r->agent;
	struct err e;

	while (r->call == NULL && r->master < a->view.n_masters) {
		const struct view_master *m = &a->view.masters[r->master++];

		r->call = call_start(a->base, &m->addr, &a->identity, m->key,
		    NULL, json_pack("{s:s}", "verb", "renew"), &renewal_call, r,
		    &e);
		if (r->call == NULL)
			log_warn("renewal: %s", e.text);
	}
	if (r->call == NULL)
		renewal_schedule(r, RETRY_S);
}

static void
renewal_by_ourselves(struct renewal *r)
{
	struct agent *a = r->agent;
	struct issued issued;
	struct err e;

	if (master_renew_node(a->master, a->identity.public, &issued, &e) ==
		0 &&
	    store_certificate(a, issued.bytes, issued.size, &e) == 0) {
		renewal_succeeded(r);
		return;
	}
	log_warn("renewal: %s", e.text);
	renewal_schedule(r, RETRY_S);
}

static void
call_done(json_t *reply, const struct err *why, int64_t skew_ms, void *arg)
{
	struct renewal *r = arg;
	struct err e = { 0 };

	(void)skew_ms;
	r->call = NULL;
	if (why != NULL)
		e = *why;
	else if (take_certificate(r->agent, reply, &e) == 0) {
		renewal_succeeded(r);
		return;
	}
	log_warn("renewal of this node's certificate: %s", e.text);
	renewal_ask(r);
}

static int
take_certificate(struct agent *a, json_t *reply, struct err *e)
{
	uint8_t bytes[CERT_MAX];
	const char *text;
	size_t size;

	if (json_get_string(reply, "cert", 2 * CERT_MAX, &text, e) == -1)
		return -1;
	if (sodium_base642bin(bytes, sizeof(bytes), text, strlen(text), NULL,
		&size, NULL, sodium_base64_VARIANT_ORIGINAL) == -1)
		return err_set(e, ERR_PROTOCOL,
		    "the certificate is not base64");
	return store_certificate(a, bytes, size, e);
}

static int
store_certificate(struct agent *a, const uint8_t *bytes, size_t size,
    struct err *e)
{
	struct cert c;

	if (cert_verify(bytes, size, a->identity.authority, a->identity.public,
		clock_wall_ms() / 1000, &c, e) == -1 ||
	    identity_store(&a->state, CERT_NODE, NULL, bytes, size, e) == -1)
		return -1;
	memcpy(a->identity.cert, bytes, size);
	a->identity.cert_size = size;
	a->cert = c;
	log_info("certificate renewed: serial %" PRIu64, c.serial);
	return 0;
}
