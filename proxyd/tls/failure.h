/*
 * failure.h: why a TLS handshake comes to nothing.  One table: the word
 * stands in logs and metrics.
 */
#ifndef MUSTER_TLS_FAILURE_H
#define MUSTER_TLS_FAILURE_H

#define TLS_FAILURE_TABLE(X)                                              \
	X(GONE, "gone", "it went away")                                   \
	X(TIMEOUT, "timeout", "it took longer than proxy.header_timeout") \
	X(CROWDED, "crowded", "too many others were under way")           \
	X(PLAIN_HTTP, "plain_http", "it speaks HTTP, not HTTPS")          \
	X(GARBAGE, "garbage", "what it sent is no TLS")                   \
	X(VERSION, "version", "no common TLS version")                    \
	X(CIPHER, "cipher", "no common cipher, curve or signature")       \
	X(ALPN, "alpn", "it wants another protocol than HTTP/1.1")        \
	X(NAME, "name", "there is no certificate for the name it wants")  \
	X(ALERT, "alert", "it does not accept what it was offered")       \
	X(CERTIFICATE, "certificate", "the certificate cannot be used")   \
	X(OTHER, "other", "the handshake failed")

enum tls_failure {
#define X(name, word, text) TLS_FAILURE_##name,
	TLS_FAILURE_TABLE(X)
#undef X
	    TLS_FAILURES
};

/* "cipher" */
const char *tls_failure_word(enum tls_failure);
/* A clause for people. */
const char *tls_failure_text(enum tls_failure);

/* Which it was, by the reason code of OpenSSL's error. */
enum tls_failure tls_failure_of(int reason);

#endif
