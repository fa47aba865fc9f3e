/*
 * sni.h: the server name in a ClientHello, before OpenSSL has looked at it:
 * a session may be resumed by the name it began with and by no other (RFC
 * 6066, section 3), which OpenSSL does not see to.
 */
#ifndef MUSTER_TLS_SNI_H
#define MUSTER_TLS_SNI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNI_NAME_MAX 255
#define SNI_CONTEXT  32

/* The host name in the extension server_name; false: there is none, or the
 * extension is malformed.  Takes any bytes; *name points into them. */
bool sni_parse(const uint8_t *extension, size_t size, const uint8_t **name,
    size_t *len);

/* A digest of the name, in lower case and without the dot at its end; of none
 * if there is none. */
void sni_context(const uint8_t *extension, size_t size,
    uint8_t context[SNI_CONTEXT]);

#endif
