/*
 * exec_output.h: what becomes of the output of nodes: live with labels,
 * gathered, one JSON object a node, or files.  The two streams are told
 * apart throughout; a row of a table says what each form does with one.
 */
#ifndef CLUSTERCTL_EXEC_OUTPUT_H
#define CLUSTERCTL_EXEC_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "clusterctl/fanout.h"
#include "clusterctl/labels.h"
#include "clusterctl/spool.h"

struct exec_opts;
struct exec_output;

enum exec_stream { EXEC_STDOUT, EXEC_STDERR, N_EXEC_STREAMS };

/* One stream of one node. */
struct exec_flow {
	struct label label;
	struct spool spool;
	int fd;
	uint64_t bytes;
};

struct exec_streams {
	struct exec_flow flow[N_EXEC_STREAMS];
};

/* names: in the order of the tasks.  Makes --outdir and --errdir. */
struct exec_output *exec_output_new(const struct exec_opts *,
    const struct dir_node *const *nodes, size_t n, struct err *);
void exec_output_free(struct exec_output *);

/* Descriptors that each node needs. */
unsigned exec_output_n_fds(const struct exec_opts *);

void exec_streams_init(struct exec_streams *);
int exec_output_start(struct exec_output *, struct exec_streams *,
    const struct task *, struct err *);
int exec_output_put(struct exec_output *, struct exec_streams *,
    const struct task *, enum exec_stream, const void *bytes, size_t n,
    struct err *);
/* The node has its result; frees what the streams hold. */
int exec_output_end(struct exec_output *, struct exec_streams *,
    const struct task *, double seconds, struct err *);
/* What waits for the end: groups, differences, lists of hosts. */
int exec_output_finish(struct exec_output *, struct fanout *, struct err *);

/* The reader of our standard output went away. */
bool exec_output_unread(const struct exec_output *);

#endif
