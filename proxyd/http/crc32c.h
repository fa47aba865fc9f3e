/*
 * crc32c.h: the checksum of iSCSI (RFC 3720, polynomial 1edc6f41), which a
 * PROXY header may carry.
 */
#ifndef MUSTER_CRC32C_H
#define MUSTER_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on with what it returned for the bytes before; 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);

#endif
