/*
 * fuzz_cert_image.c: any bytes as a certificate image: refused, or whatever
 * it is asked stays within it.
 */
#include <sys/mman.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/io.h"
#include "proxyd/tls/cert_form.h"
#include "proxyd/tls/cert_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void
touch(const struct cert_image *c, struct cert_image_bytes b)
{
	const uint8_t *at = cert_image_at(c, b);

	if (b.off > c->head->size || b.size > c->head->size - b.off)
		abort();
	if (b.size > 0) {
		volatile uint8_t last = at[b.size - 1];

		(void)last;
	}
}

static void
ask(const struct cert_image *c, const uint8_t *name, size_t size)
{
	struct cert_image_found f;

	if (!cert_image_find(c, (const char *)name, size, &f))
		return;
	for (size_t k = 0; k < CERT_IMAGE_KINDS; k++) {
		const struct cert_image_entry *x = f.by_kind[k];

		if (x == NULL)
			continue;
		touch(c, x->key);
		touch(c, x->ocsp);
		touch(c, x->site);
		for (uint32_t i = 0; i < x->n_chain; i++)
			touch(c, x->chain[i]);
	}
}

/* The magic, the version and the size are set right; a fuzzer would seldom
 * guess them. */
int
LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct cert_image_head head;
	struct cert_image *c;
	struct err e;

	if (fd == -1 || size < sizeof(head) || size > 65536)
		goto out;
	memcpy(&head, input, sizeof(head));
	memcpy(head.magic, CERT_IMAGE_MAGIC, sizeof(head.magic));
	head.version = CERT_IMAGE_VERSION;
	head.size = (uint32_t)size;
	if (io_write_n(fd, &head, sizeof(head)) == -1 ||
	    io_write_n(fd, input + sizeof(head), size - sizeof(head)) == -1 ||
	    (c = cert_image_map(fd, &e)) == NULL)
		goto out;
	ask(c, input, 0);
	ask(c, input, size < 300 ? size : 300);
	ask(c, (const uint8_t *)"www.a.example", 13);
	cert_image_release(c);
out:
	if (fd != -1)
		close(fd);
	return 0;
}
