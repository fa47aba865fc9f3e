/* frugal.c: see frugal.h. */
#include "nodeagent/frugal.h"

#include <sys/mman.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <unistd.h>

static int drop_code(struct dl_phdr_info *, size_t size, void *arg);

void
frugal_setup(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 * 1024);
	mallopt(M_TRIM_THRESHOLD, 64 * 1024);
	mallopt(M_TOP_PAD, 16 * 1024);
}

void
frugal_trim(void)
{
	malloc_trim(0);
	dl_iterate_phdr(drop_code, NULL);
}

/* Read-only segments are clean copies of files: nothing is lost. */
static int
drop_code(struct dl_phdr_info *object, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)arg;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + ph->p_vaddr;
		uintptr_t to = from + ph->p_memsz;

		if (ph->p_type != PT_LOAD || (ph->p_flags & PF_W) != 0)
			continue;
		from &= ~(page - 1);
		madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}
