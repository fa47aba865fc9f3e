/*
 * server.c: see server.h.
 *
 * The callbacks are in the order in which a handshake comes to them: the
 * session, the name, the protocol, the certificate, its OCSP staple, the ticket.
 */
#include "proxyd/tls/server.h"

#include <sys/socket.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "common/base/log.h"
#include "proxyd/tls/alpn.h"
#include "proxyd/tls/server_parts.h"
#include "proxyd/tls/sni.h"
#include "proxyd/tls/wire.h"

#define SECURITY_LEVEL 2 /* RSA from 2048 bits, no SHA-1 */
/* After a handshake of TLS 1.3: a client has as many as it had connections,
 * and a second one costs us a packet. */
#define TICKETS 1
/* A ticket sealed just before its key was replaced can be opened so long. */
#define SESSION_S ((TICKET_KEYS - 1) * TICKET_ROTATE_S)

#define OPTIONS                                            \
	(SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | \
	    SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION)
#define MODES                                                       \
	(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | \
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER)

/* As Mozilla's guidelines 5.7 have them; the client's order counts. */
#define CIPHERS_13                                       \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"
#define CIPHERS_12                                                   \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:" \
	"DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:"       \
	"DHE-RSA-CHACHA20-POLY1305"
#define CURVES "X25519:P-256:P-384"

static const struct {
	int oldest;
	const char *ciphers; /* of TLS 1.2 */
} profiles[] = {
	[SNAP_TLS_INTERMEDIATE] = { TLS1_2_VERSION, CIPHERS_12 },
	[SNAP_TLS_MODERN] = { TLS1_3_VERSION, CIPHERS_12 },
};
_Static_assert(nitems(profiles) == SNAP_TLS_PROFILES, "a row per profile");

static bool kernel_has_tls(void);
static SSL_CTX *context_new(struct tls_server *, enum snap_tls_profile);
static int on_hello(SSL *, int *alert, void *);
static int on_name(SSL *, int *alert, void *);
static int on_alpn(SSL *, const unsigned char **out, unsigned char *out_len,
    const unsigned char *list, unsigned size, void *);
static int on_certificate(SSL *, void *);
static int on_staple(SSL *, void *);
static int on_ticket(SSL *, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *, EVP_MAC_CTX *, int seal);

struct tls_server *
tls_server_new(struct err *e)
{
	struct tls_server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		err_set(e, ERR_LOCAL, "out of memory for TLS");
	return s;
}

void
tls_server_free(struct tls_server *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < nitems(s->contexts); i++)
		SSL_CTX_free(s->contexts[i]);
	cert_cache_free(s->cache);
	cert_image_release(s->certs);
	EVP_CIPHER_free(s->ticket_cipher);
	wire_method_free(s->wire);
	ticket_keys_wipe(&s->tickets);
	free(s);
}

int
tls_server_open(struct tls_server *s, struct err *e)
{
	if (s->cache != NULL)
		return 0;
	/* What is spoken is decided here alone; and a worker opens no file. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
	    (s->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL)) ==
		NULL ||
	    (s->wire = wire_method_new()) == NULL)
		return tls_err(e, ERR_LOCAL, "cannot start TLS");
	s->kernel = kernel_has_tls();
	if (tls_server_context(s, e) == NULL)
		return -1;
	return (s->cache = cert_cache_new(e)) == NULL ? -1 : 0;
}

void
tls_server_profile(struct tls_server *s, enum snap_tls_profile profile)
{
	s->profile = profile;
}

void
tls_server_certs(struct tls_server *s, struct cert_image *certs)
{
	cert_image_release(s->certs);
	s->certs = certs;
}

void
tls_server_tickets(struct tls_server *s, const struct ticket_keys *keys)
{
	s->tickets = *keys;
}

SSL_CTX *
tls_server_context(struct tls_server *s, struct err *e)
{
	SSL_CTX **ctx = &s->contexts[s->profile];

	if (*ctx == NULL && (*ctx = context_new(s, s->profile)) == NULL)
		tls_err(e, ERR_LOCAL, "cannot set up TLS");
	return *ctx;
}

int
tls_err(struct err *e, int code, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	return err_set(e, code, "%s: %s", what,
	    why != NULL ? why : "out of memory");
}

/* Asked once, or OpenSSL would ask with each connection.  While we are root
 * it also has the kernel load what it needs. */
static bool
kernel_has_tls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd != -1 &&
	    (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0 ||
		errno == ENOTCONN);

	io_close(&fd);
	if (has)
		log_info("tls: the kernel can encrypt what is sent");
	return has;
}

static SSL_CTX *
context_new(struct tls_server *s, enum snap_tls_profile profile)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (ctx == NULL)
		return NULL;
	SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
	if (SSL_CTX_set_min_proto_version(ctx, profiles[profile].oldest) != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, CIPHERS_13) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, profiles[profile].ciphers) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, CURVES) != 1 ||
	    SSL_CTX_set_dh_auto(ctx, 1) != 1 ||
	    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_options(ctx,
	    OPTIONS | (s->kernel ? SSL_OP_ENABLE_KTLS : 0));
	SSL_CTX_set_mode(ctx, MODES);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ctx, SESSION_S);
	SSL_CTX_set_num_tickets(ctx, TICKETS);
	SSL_CTX_set_app_data(ctx, s);
	SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, s);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	SSL_CTX_set_cert_cb(ctx, on_certificate, s);
	SSL_CTX_set_tlsext_status_cb(ctx, on_staple);
	SSL_CTX_set_tlsext_status_arg(ctx, s);
	return ctx;
}

/* --- what a handshake asks for */

static bool
find(const struct tls_server *s, const SSL *ssl, struct cert_image_found *found)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	return s->certs != NULL &&
	    cert_image_find(s->certs, name != NULL ? name : "",
		name != NULL ? strlen(name) : 0, found);
}

/* A session is good for the name it began with. */
static int
on_hello(SSL *ssl, int *alert, void *arg)
{
	const unsigned char *extension = NULL;
	uint8_t context[SNI_CONTEXT];
	size_t size = 0;

	(void)alert;
	(void)arg;
	SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &extension,
	    &size);
	sni_context(extension, size, context);
	SSL_set_session_id_context(ssl, context, sizeof(context));
	return SSL_CLIENT_HELLO_SUCCESS;
}

static int
on_name(SSL *ssl, int *alert, void *arg)
{
	struct cert_image_found found;

	if (find(arg, ssl, &found))
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int
on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *list, unsigned size, void *arg)
{
	(void)ssl;
	(void)arg;
	*out = alpn_choose(list, size, out_len);
	return *out != NULL ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Both kinds, if there are: OpenSSL takes what the client can verify. */
static int
on_certificate(SSL *ssl, void *arg)
{
	struct tls_server *s = arg;
	struct cert_image_found found;
	bool any = false;
	struct err e;

	if (!find(s, ssl, &found))
		return 0;
	for (int i = 0; i < CERT_IMAGE_KINDS; i++) {
		const struct cert_image_entry *entry = found.by_kind[i];

		if (entry == NULL)
			continue;
		if (cert_cache_use(s->cache, s->certs, entry, ssl, &e) == 0)
			any = true;
		else
			log_error("site %.*s: %s", (int)entry->site.size,
			    (const char *)cert_image_at(s->certs, entry->site),
			    e.text);
	}
	return any;
}

/* What goes with the certificate that was chosen. */
static int
on_staple(SSL *ssl, void *arg)
{
	struct tls_server *s = arg;
	const X509 *leaf = SSL_get_certificate(ssl);
	int64_t now_s = clock_wall_ms() / 1000;
	struct cert_image_found found;
	uint8_t *copy;

	if (!find(s, ssl, &found))
		return SSL_TLSEXT_ERR_NOACK;
	for (int i = 0; i < CERT_IMAGE_KINDS; i++) {
		const struct cert_image_entry *entry = found.by_kind[i];

		if (entry == NULL || entry->ocsp.size == 0 ||
		    entry->ocsp_until_s <= now_s ||
		    !cert_cache_is(s->cache, entry, leaf))
			continue;
		copy = OPENSSL_memdup(cert_image_at(s->certs, entry->ocsp),
		    entry->ocsp.size);
		if (copy == NULL)
			break;
		SSL_set_tlsext_status_ocsp_resp(ssl, copy, entry->ocsp.size);
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static int
on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	struct tls_server *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const struct ticket_key *newest = &s->tickets.key[0];
	const struct ticket_key *key =
	    seal ? newest : ticket_keys_find(&s->tickets, name);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, NULL, 0),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
		    (char[]){ "SHA256" }, 0),
		OSSL_PARAM_construct_end(),
	};

	if (key == NULL || s->tickets.n == 0)
		return 0;
	params[0].data = (void *)(uintptr_t)key->mac;
	params[0].data_size = sizeof(key->mac);
	if (seal) {
		memcpy(name, key->name, sizeof(key->name));
		if (RAND_bytes(iv,
			EVP_CIPHER_get_iv_length(s->ticket_cipher)) != 1)
			return -1;
	}
	if (EVP_CipherInit_ex2(cipher, s->ticket_cipher, key->cipher, iv, seal,
		NULL) != 1 ||
	    EVP_MAC_CTX_set_params(mac, params) != 1)
		return -1;
	/* 2: and the client gets a new one.  Those of TLS 1.3 are for one use
	 * (RFC 8446, appendix C.4). */
	return key == newest && SSL_version(ssl) != TLS1_3_VERSION ? 1 : 2;
}
