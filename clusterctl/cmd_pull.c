/* cmd_pull.c: pull: files from many nodes to here, each as NAME.NODE. */
#include "clusterctl/command.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clusterctl/copy.h"
#include "clusterctl/digest.h"
#include "common/base/io.h"
#include "common/base/json.h"

struct pull {
	char **files; /* paths on the nodes */
	size_t n;
	const char *dir; /* here */
};

enum step {
	STEP_HAVE, /* whether its file equals ours */
	STEP_BYTES /* its bytes, then what they are */
};

struct pulling {
	struct copy_part part; /* first */
	enum step step;
	size_t at;	       /* file */
	char path[PATH_MAX];   /* of the file here */
	char beside[PATH_MAX]; /* of what has come; "": none */
	int fd;
	struct digest digest;
};

static int run(struct context *, const void *, int, char **, struct err *);
static int check_dir(const char *dir, struct err *);
static int start(struct task *, void *, struct err *);
static int record(struct task *, enum record_type, const uint8_t *, size_t,
    void *, struct err *);
static int take_bytes(struct task *, struct copy *, const uint8_t *, size_t,
    struct err *);
static int take_reply(struct task *, struct copy *, json_t *, struct err *);
static int ask_bytes(struct task *, const struct pull *, struct err *);
static int next(struct task *, struct copy *, struct err *);
static int settle(struct task *, json_t *, struct err *);
static void ended(struct task *, void *);
static int set_path(const struct task *, const struct pull *, struct err *);
static int send_json(struct task *, json_t *take, struct err *);

static const struct fanout_job pull_job = {
	.start = start,
	.record = record,
	.ended = ended,
	.progress = copy_progress,
	.own_size = sizeof(struct pulling),
	.n_fds = 1,
};

const struct command cmd_pull = {
	.name = "pull",
	.usage = "[options] [SET] FILE... DIR",
	.summary = "copy files from nodes to here",
	.about = "Each FILE becomes DIR/NAME.NODE; DIR must be there.  Bytes, "
		 "mode and time\n"
		 "are kept.  A file that is here already with equal content is "
		 "skipped;\n"
		 "another is replaced in one step, once the whole of it has "
		 "arrived.\n",
	.examples = "  clusterctl pull -r worker_http "
		    "/var/log/apache2/error.log logs\n",
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
	struct pull p = { 0 };
	struct copy c = { .verb = "pull", .opts = opts, .cx = cx, .own = &p };
	const char *set = copy_target(c.opts, &argc, &argv);

	if (argc < 2)
		return err_set(e, ERR_USAGE,
		    "what goes where? usage: clusterctl pull %s",
		    cmd_pull.usage);
	p.files = argv;
	p.n = (size_t)argc - 1;
	p.dir = argv[argc - 1];
	for (size_t i = 0; i < p.n; i++)
		if (copy_check_path("FILE", p.files[i], e) == -1)
			return -1;
	if (check_dir(p.dir, e) == -1)
		return -1;
	return copy_run(&c, set, &pull_job, e);
}

static int
check_dir(const char *dir, struct err *e)
{
	struct stat sb;

	if (stat(dir, &sb) == -1)
		return err_errno(e, ERR_USAGE, "cannot pull to %s", dir);
	if (!S_ISDIR(sb.st_mode))
		return err_set(e, ERR_USAGE,
		    "%s is no directory; pull makes DIR/NAME.NODE in one", dir);
	if (access(dir, W_OK | X_OK) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write into %s", dir);
	return 0;
}

static int
start(struct task *t, void *arg, struct err *e)
{
	struct pulling *own = t->own;

	own->fd = -1;
	return next(t, arg, e);
}

static int
record(struct task *t, enum record_type type, const uint8_t *body, size_t size,
    void *arg, struct err *e)
{
	struct pulling *own = t->own;
	json_t *o;
	int rv;

	if (type == REC_FILE && own->step == STEP_BYTES)
		return take_bytes(t, arg, body, size, e);
	if (type != REC_REPLY) {
		err_set(e, ERR_PROTOCOL, "it sent a record out of turn");
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	if ((o = json_parse_object(body, size, PROTO_RECORD_MAX, e)) == NULL) {
		task_end(t, OUTCOME_LOST, e);
		return 0;
	}
	rv = take_reply(t, arg, o, e);
	json_decref(o);
	return rv;
}

static int
take_bytes(struct task *t, struct copy *c, const uint8_t *bytes, size_t n,
    struct err *e)
{
	struct pulling *own = t->own;

	digest_add(&own->digest, bytes, n);
	if (io_write_n(own->fd, bytes, n) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write %s", own->beside);
	own->part.sum.bytes += n;
	c->sum.bytes += n;
	return 0;
}

static int
take_reply(struct task *t, struct copy *c, json_t *o, struct err *e)
{
	struct pulling *own = t->own;
	bool same;

	if (own->step == STEP_BYTES) {
		if (settle(t, o, e) == -1)
			return -1;
		own->part.sum.n_copied++;
	} else if (json_opt_bool(o, "same", false, &same, e) == -1) {
		task_end(t, OUTCOME_LOST, e);
		return 0;
	} else if (!same) {
		return ask_bytes(t, c->own, e);
	} else {
		own->part.sum.n_same++;
	}
	own->at++;
	return next(t, c, e);
}

/* The file at hand, or the end.  Only what is here already is compared. */
static int
next(struct task *t, struct copy *c, struct err *e)
{
	const struct pull *p = c->own;
	struct pulling *own = t->own;
	char hash[DIGEST_HEX + 1];
	int fd, rv;

	if (own->at == p->n) {
		task_end(t, OUTCOME_OK, NULL);
		return 0;
	}
	if (set_path(t, p, e) == -1)
		return -1;
	fd = open(own->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd == -1)
		return ask_bytes(t, p, e);
	rv = digest_fd(fd, own->path, hash, e);
	close(fd);
	if (rv == -1)
		return -1;
	own->step = STEP_HAVE;
	return send_json(t,
	    json_pack("{s:s, s:s, s:s}", "verb", "have", "path",
		p->files[own->at], "hash", hash),
	    e);
}

static int
ask_bytes(struct task *t, const struct pull *p, struct err *e)
{
	struct pulling *own = t->own;
	char name[PATH_MAX];

	if ((size_t)snprintf(name, sizeof(name), "%s.muster-XXXXXX",
		own->path) >= sizeof(name))
		return err_set(e, ERR_USAGE, "%.100s is too long", own->path);
	own->fd = mkostemp(name, O_CLOEXEC);
	if (own->fd == -1)
		return err_errno(e, ERR_LOCAL, "cannot write beside %s",
		    own->path);
	memcpy(own->beside, name, sizeof(name));
	own->step = STEP_BYTES;
	digest_init(&own->digest);
	return send_json(t,
	    json_pack("{s:s, s:s}", "verb", "pull", "path", p->files[own->at]),
	    e);
}

/* All bytes have come: checks them, and gives the file its name. */
static int
settle(struct task *t, json_t *o, struct err *e)
{
	struct pulling *own = t->own;
	char hash[DIGEST_HEX + 1];
	const char *hash_there;
	int64_t mode, mtime_s;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	digest_end(&own->digest, hash);
	if (json_get_string(o, "hash", DIGEST_HEX, &hash_there, e) == -1 ||
	    json_opt_int(o, "mode", 0, 07777, 0600, &mode, e) == -1 ||
	    json_opt_int(o, "mtime", 0, INT64_MAX / 2, 0, &mtime_s, e) == -1)
		return -1;
	if (strcmp(hash, hash_there) != 0)
		return err_set(e, ERR_PROTOCOL,
		    "the bytes that came have another hash");
	times[1].tv_sec = mtime_s;
	/* Whose program it would be is another question than what is in it:
	 * no set-user-ID from a node. */
	if (fchmod(own->fd, (mode_t)mode & 0777) == -1 ||
	    futimens(own->fd, times) == -1 || fsync(own->fd) == -1 ||
	    rename(own->beside, own->path) == -1)
		return err_errno(e, ERR_LOCAL, "cannot write %s", own->path);
	own->beside[0] = '\0';
	io_close(&own->fd);
	return 0;
}

static void
ended(struct task *t, void *arg)
{
	struct pulling *own = t->own;

	if (own->beside[0] != '\0') {
		unlink(own->beside);
		io_close(&own->fd);
	}
	copy_ended(t, arg);
}

static int
set_path(const struct task *t, const struct pull *p, struct err *e)
{
	struct pulling *own = t->own;
	const char *name = strrchr(p->files[own->at], '/') + 1;

	if ((size_t)snprintf(own->path, sizeof(own->path), "%s/%s.%s", p->dir,
		name, t->node->name) >= sizeof(own->path))
		return err_set(e, ERR_USAGE, "%.100s is too long a path",
		    p->files[own->at]);
	return 0;
}

static int
send_json(struct task *t, json_t *take, struct err *e)
{
	if (take == NULL)
		return err_set(e, ERR_LOCAL, "out of memory for a request");
	return channel_send_json(t->channel, REC_REQUEST, take, e);
}
