/* cmd_push.c: push: files and trees from here to many nodes. */
#include "clusterctl/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/copy.h"
#include "clusterctl/manifest.h"
#include "clusterctl/window.h"
#include "common/base/io.h"
#include "common/base/json.h"

#define PIECE 61440 /* bytes of a FILE record */

/* What goes where, the same for every node. */
struct push {
	struct manifest manifest;
	const char *dest;
};

/* What the session waits for. */
enum step {
	STEP_LOOK, /* what DEST is there */
	STEP_HAVE, /* whether it has this file already */
	STEP_SEND, /* room for more bytes */
	STEP_TAKEN /* that it has taken this entry */
};

struct pushing {
	struct copy_part part; /* first */
	enum step step;
	bool into;	      /* DEST is a directory */
	size_t at;	      /* entry */
	int fd;		      /* of the file that is being sent; 0: none */
	struct window window; /* into that file */
};

static int run(struct context *, const void *, int, char **, struct err *);
static int start(struct task *, void *, struct err *);
static int record(struct task *, enum record_type, const uint8_t *, size_t,
    void *, struct err *);
static int take_reply(struct task *, struct copy *, json_t *, struct err *);
static int take_look(struct task *, struct copy *, json_t *, struct err *);
static int take_have(struct task *, struct copy *, json_t *, struct err *);
static int next(struct task *, struct copy *, struct err *);
static int send_entry(struct task *, const struct push *, struct err *);
static int send_bytes(struct task *, struct copy *, struct err *);
static int drained(struct task *, void *, struct err *);
static void ended(struct task *, void *);
static int path_there(const struct push *, const struct pushing *,
    char path[PATH_MAX], struct err *);
static int send_json(struct task *, json_t *take, struct err *);

static const struct fanout_job push_job = {
	.start = start,
	.record = record,
	.drained = drained,
	.ended = ended,
	.progress = copy_progress,
	.own_size = sizeof(struct pushing),
	.n_fds = 1,
};

const struct command cmd_push = {
	.name = "push",
	.usage = "[options] [SET] FILE... DEST",
	.summary = "copy files and trees to nodes",
	.about =
	    "As cp -r: into DEST when that is a directory there, else as "
	    "DEST.\n"
	    "Bytes, modes, times and symbolic links are kept.  A file that is\n"
	    "there with equal content and mode is skipped; another is "
	    "replaced\n"
	    "in one step, once the whole of it has arrived.\n",
	.examples = "  clusterctl push -r worker_http site.conf "
		    "/etc/apache2/sites-enabled/\n"
		    "  clusterctl push web[1-3] ./release /srv/app\n",
	.section = SECTION_RUN,
	.needs = NEEDS_CLUSTER | NEEDS_OPERATOR,
	.sets = copy_sets,
	.n_sets = N_COPY_SETS,
	.opts_size = sizeof(struct copy_opts),
	.min_args = 2,
	.max_args = ANY_NUMBER,
	.n_leading = copy_n_leading,
	.run = run,
};

static int
run(struct context *cx, const void *opts, int argc, char **argv, struct err *e)
{
	struct push p = { 0 };
	struct copy c = { .verb = "push", .opts = opts, .cx = cx, .own = &p };
	const char *set = copy_target(c.opts, &argc, &argv);
	int status = 0;

	if (argc < 2)
		return err_set(e, ERR_USAGE,
		    "what goes where? usage: clusterctl push %s",
		    cmd_push.usage);
	p.dest = argv[argc - 1];
	if (copy_check_path("DEST", p.dest, e) == -1)
		return -1;
	manifest_init(&p.manifest);
	for (int i = 0; status == 0 && i < argc - 1; i++)
		status = manifest_add(&p.manifest, argv[i], e);
	if (status == 0 && p.manifest.n == 0)
		status = err_set(e, ERR_USAGE, "there is nothing to push");
	if (status == 0)
		status = copy_run(&c, set, &push_job, e);
	manifest_fini(&p.manifest);
	return status;
}

static int
start(struct task *t, void *arg, struct err *e)
{
	const struct copy *c = arg;
	const struct push *p = c->own;

	return send_json(t,
	    json_pack("{s:s, s:s}", "verb", "have", "path", p->dest), e);
}

static int
record(struct task *t, enum record_type type, const uint8_t *body, size_t size,
    void *arg, struct err *e)
{
	struct copy *c = arg;
	struct pushing *own = t->own;
	json_t *o;
	int rv;

	if (type == REC_TAKEN) {
		window_taken(&own->window, body);
		return drained(t, arg, e);
	}
	if (type != REC_REPLY) {
		err_set(e, ERR_PROTOCOL, "it sent a record out of turn");
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	if ((o = json_parse_object(body, size, PROTO_RECORD_MAX, e)) == NULL) {
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	rv = take_reply(t, c, o, e);
	json_decref(o);
	return rv;
}

static int
take_reply(struct task *t, struct copy *c, json_t *o, struct err *e)
{
	const struct push *p = c->own;
	struct pushing *own = t->own;

	switch (own->step) {
	case STEP_LOOK:
		return take_look(t, c, o, e);
	case STEP_HAVE:
		return take_have(t, c, o, e);
	case STEP_TAKEN:
		if (p->manifest.entries[own->at].type == ENTRY_FILE)
			own->part.sum.n_copied++;
		own->at++;
		return next(t, c, e);
	case STEP_SEND:
		break;
	}
	err_set(e, ERR_PROTOCOL, "it answered before it had the whole file");
	task_end(t, OUTCOME_LOST, e);
	return 0;
}

/* DEST as cp sees it. */
static int
take_look(struct task *t, struct copy *c, json_t *o, struct err *e)
{
	const struct push *p = c->own;
	struct pushing *own = t->own;
	const char *type;

	if (json_get_string(o, "type", 16, &type, e) == -1) {
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	own->into = strcmp(type, "dir") == 0;
	if (!own->into &&
	    (p->manifest.n_sources > 1 || p->dest[strlen(p->dest) - 1] == '/'))
		err_set(e, ERR_USAGE, "%s is no directory there", p->dest);
	else if (strcmp(type, "file") == 0 &&
	    p->manifest.entries[0].type == ENTRY_DIR)
		err_set(e, ERR_USAGE, "%s is a file there, no directory",
		    p->dest);
	else
		return next(t, c, e);
	task_end(t, OUTCOME_REFUSED, e);
	return 0;
}

static int
take_have(struct task *t, struct copy *c, json_t *o, struct err *e)
{
	const struct push *p = c->own;
	struct pushing *own = t->own;
	const struct entry *en = &p->manifest.entries[own->at];
	int64_t mode;
	bool same;

	if (json_opt_bool(o, "same", false, &same, e) == -1 ||
	    json_opt_int(o, "mode", 0, 07777, -1, &mode, e) == -1) {
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	if (!same || (mode_t)mode != en->mode)
		return send_entry(t, p, e) == 0 ? send_bytes(t, c, e) : -1;
	own->part.sum.n_same++;
	own->at++;
	return next(t, c, e);
}

/* The entry at hand, or the end. */
static int
next(struct task *t, struct copy *c, struct err *e)
{
	const struct push *p = c->own;
	struct pushing *own = t->own;
	const struct entry *en = &p->manifest.entries[own->at];
	char path[PATH_MAX];

	if (own->at == p->manifest.n) {
		task_end(t, OUTCOME_OK, NULL);
		return 0;
	}
	if (en->type != ENTRY_FILE)
		return send_entry(t, p, e);
	own->step = STEP_HAVE;
	if (path_there(p, own, path, e) == -1)
		return -1;
	return send_json(t,
	    json_pack("{s:s, s:s, s:s}", "verb", "have", "path", path, "hash",
		en->hash),
	    e);
}

/* The request; the bytes of a file follow. */
static int
send_entry(struct task *t, const struct push *p, struct err *e)
{
	struct pushing *own = t->own;
	const struct entry *en = &p->manifest.entries[own->at];
	char path[PATH_MAX];

	if (path_there(p, own, path, e) == -1)
		return -1;
	own->step = STEP_TAKEN;
	if (en->type == ENTRY_FILE) {
		own->step = STEP_SEND;
		own->window = (struct window){ 0 };
		own->fd = open(en->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (own->fd == -1)
			return err_errno(e, ERR_LOCAL, "cannot read %s",
			    en->source);
	}
	return send_json(t,
	    json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:s*, s:s*}", "verb",
		"push", "path", path, "type", entry_type_word(en->type), "mode",
		(int)en->mode, "mtime", (json_int_t)en->mtime_s, "size",
		(json_int_t)en->size, "hash",
		en->type == ENTRY_FILE ? en->hash : NULL, "target", en->target),
	    e);
}

/* As much as the session takes now; the rest when it has drained.  No more
 * than was hashed: what grew meanwhile is the next push's. */
static int
send_bytes(struct task *t, struct copy *c, struct err *e)
{
	const struct push *p = c->own;
	struct pushing *own = t->own;
	const struct entry *en = &p->manifest.entries[own->at];
	char buf[PIECE];
	size_t room;
	ssize_t n;

	while ((room = window_room(&own->window, t->channel)) > 0) {
		uint64_t left = en->size - own->window.sent;
		size_t want = room < sizeof(buf) ? room : sizeof(buf);

		if (left < want)
			want = (size_t)left;
		n = pread(own->fd, buf, want, (off_t)own->window.sent);
		if (n == -1)
			return err_errno(e, ERR_LOCAL, "cannot read %s",
			    en->source);
		if (n == 0) {
			io_close(&own->fd);
			own->fd = 0;
			own->step = STEP_TAKEN;
			return task_send(t, REC_EOF, NULL, 0, e);
		}
		if (task_send(t, REC_FILE, buf, (size_t)n, e) == -1)
			return -1;
		own->window.sent += (uint64_t)n;
		own->part.sum.bytes += (uint64_t)n;
		c->sum.bytes += (uint64_t)n;
	}
	return 0;
}

static int
drained(struct task *t, void *arg, struct err *e)
{
	const struct pushing *own = t->own;

	return own->step == STEP_SEND ? send_bytes(t, arg, e) : 0;
}

static void
ended(struct task *t, void *arg)
{
	struct pushing *own = t->own;

	if (own->fd > 0)
		close(own->fd);
	copy_ended(t, arg);
}

/* DEST/NAME/BELOW in a directory, else DEST/BELOW. */
static int
path_there(const struct push *p, const struct pushing *own, char path[PATH_MAX],
    struct err *e)
{
	const struct entry *en = &p->manifest.entries[own->at];
	size_t len = strlen(p->dest);
	const char *name = own->into ? en->name : "";

	while (len > 1 && p->dest[len - 1] == '/')
		len--;
	if (len == 1)
		len = 0; /* "/" itself */
	if ((size_t)snprintf(path, PATH_MAX, "%.*s%s%s%s%s", (int)len, p->dest,
		*name != '\0' ? "/" : "", name, en->below[0] != '\0' ? "/" : "",
		en->below) >= PATH_MAX)
		return err_set(e, ERR_USAGE, "the path of %.100s is too long",
		    en->source);
	return 0;
}

static int
send_json(struct task *t, json_t *take, struct err *e)
{
	if (take == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a request");
	return channel_send_json(t->channel, REC_REQUEST, take, e);
}
