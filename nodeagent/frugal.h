/*
 * frugal.h: an agent is idle nearly always, and there is one on every
 * machine: it keeps in memory what an idle agent needs.
 */
#ifndef NODEAGENT_FRUGAL_H
#define NODEAGENT_FRUGAL_H

/* Big blocks go back to the system as soon as they are freed.  Once, before
 * anything is allocated. */
void frugal_setup(void);

/* Gives back free memory, and unmaps the pages of program code: what is
 * needed again comes back from the page cache. */
void frugal_trim(void);

#endif
