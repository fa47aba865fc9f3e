/*
 * log_writer.h: a thread of the master that writes the access log: it takes
 * whole lines from the workers' rings and appends them to the file.  A disk
 * that stalls stalls only this thread; the rings then fill and drop lines,
 * counted.
 */
#ifndef MUSTER_LOG_WRITER_H
#define MUSTER_LOG_WRITER_H

#include "common/base/err.h"
#include "proxyd/process/log_ring.h"

struct log_writer;

struct log_writer *log_writer_new(struct err *);

/* Writes what is left (for at most a second) and ends the thread. */
void log_writer_free(struct log_writer *);

/* Appends to this file from now on; "": lines are thrown away.  A file that
 * cannot be opened is an error, and the old one stays. */
int log_writer_open(struct log_writer *, const char *path, struct err *);

/* Opens the same path again, after the file was moved away. */
int log_writer_reopen(struct log_writer *, struct err *);

/* A new ring for a worker; valid until log_writer_drop(), after which what
 * is left in it is still written. */
struct log_ring *log_writer_ring(struct log_writer *, struct err *);
void log_writer_drop(struct log_writer *, struct log_ring *);

#endif
