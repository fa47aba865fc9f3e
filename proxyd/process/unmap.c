/* unmap.c: see unmap.h. */
#include "proxyd/process/unmap.h"

#include <sys/mman.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#define SMALL	   (256U << 10) /* not worth a thread */
#define STACK_SIZE (64U << 10)

struct mapping {
	struct mapping *next;
	void *start;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct mapping *mappings; /* under the lock */
static bool started;

static void *
work(void *arg)
{
	(void)arg;
	for (;;) {
		struct mapping *m;

		pthread_mutex_lock(&lock);
		while ((m = mappings) == NULL)
			pthread_cond_wait(&more, &lock);
		mappings = m->next;
		pthread_mutex_unlock(&lock);
		munmap(m->start, m->size);
		free(m);
	}
	return NULL;
}

/* Signals are the event loop's: the thread blocks them all. */
static bool
start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (started)
		return true;
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&thread, &attr, work, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

void
unmap_later(void *at, size_t size)
{
	struct mapping *m = NULL;

	if (size >= SMALL && start())
		m = malloc(sizeof(*m));
	if (m == NULL) {
		munmap(at, size);
		return;
	}
	m->start = at;
	m->size = size;
	pthread_mutex_lock(&lock);
	m->next = mappings;
	mappings = m;
	pthread_mutex_unlock(&lock);
	pthread_cond_signal(&more);
}
