/*
 * reference.h: where a request ends, told by a plain, slow reader that shares
 * nothing with proxyd: it copies, counts and compares strings.  Whatever the
 * parser accepts, this one must understand the same way.
 */
#ifndef MUSTER_REFERENCE_H
#define MUSTER_REFERENCE_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum ref_verdict { REF_OK, REF_MORE, REF_BAD };

enum ref_body { REF_NO_BODY, REF_LENGTH, REF_CHUNKED };

struct ref_request {
	enum ref_body body;
	unsigned long long length;
	size_t head_len;
	char host[300];
};

static inline bool
ref_token_char(unsigned char c)
{
	return c > 32 && c < 127 && strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

static inline bool
ref_is_token(const char *s)
{
	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++)
		if (!ref_token_char((unsigned char)*s))
			return false;
	return true;
}

static inline char *
ref_trim(char *s)
{
	size_t n;

	while (*s == ' ' || *s == '\t')
		s++;
	n = strlen(s);
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
	return s;
}

/* The length of the first line with its CRLF; 0: no end yet; -1: bare CR, LF
 * or a NUL in it. */
static inline long
ref_line(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n' || p[i] == '\0')
			return -1;
		if (p[i] == '\r')
			return i + 1 == n    ? 0 :
			    p[i + 1] == '\n' ? (long)i + 2 :
					       -1;
	}
	return 0;
}

struct ref_seen {
	int hosts, lengths, codings;
	char length[70000], coding[70000];
};

static inline bool
ref_field(char *line, struct ref_seen *seen, struct ref_request *r)
{
	char *colon = strchr(line, ':'), *value;

	if (colon == NULL)
		return false;
	*colon = '\0';
	value = ref_trim(colon + 1);
	for (const char *p = value; *p != '\0'; p++)
		if (((unsigned char)*p < 32 && *p != '\t') || *p == 127)
			return false;
	if (!ref_is_token(line))
		return false;
	if (strcasecmp(line, "host") == 0) {
		seen->hosts++;
		snprintf(r->host, sizeof(r->host), "%.299s", value);
	}
	if (strcasecmp(line, "content-length") == 0) {
		seen->lengths++;
		snprintf(seen->length, sizeof(seen->length), "%s", value);
	}
	if (strcasecmp(line, "transfer-encoding") == 0) {
		seen->codings++;
		snprintf(seen->coding, sizeof(seen->coding), "%s", value);
	}
	return true;
}

static inline enum ref_verdict
ref_body_of(const struct ref_seen *seen, bool http10, struct ref_request *r)
{
	if (seen->hosts > 1 || (seen->hosts == 0 && !http10))
		return REF_BAD;
	if (seen->codings > 0) {
		if (http10 || seen->codings > 1 || seen->lengths > 0 ||
		    strcasecmp(seen->coding, "chunked") != 0)
			return REF_BAD;
		r->body = REF_CHUNKED;
		return REF_OK;
	}
	if (seen->lengths > 1)
		return REF_BAD;
	if (seen->lengths == 0) {
		r->body = REF_NO_BODY;
		return REF_OK;
	}
	if (seen->length[0] == '\0' || strlen(seen->length) > 19)
		return REF_BAD;
	for (const char *p = seen->length; *p != '\0'; p++)
		if (!isdigit((unsigned char)*p))
			return REF_BAD;
	r->body = REF_LENGTH;
	r->length = strtoull(seen->length, NULL, 10);
	return r->length > 9223372036854775807ULL ? REF_BAD : REF_OK;
}

/* Reads one request head. */
static inline enum ref_verdict
ref_request(const uint8_t *p, size_t n, struct ref_request *r)
{
	static struct ref_seen seen;
	static char line[70000];
	size_t at = 0;
	bool http10;
	char *sp, *sp2;
	long len;

	memset(&seen, 0, sizeof(seen));
	memset(r, 0, sizeof(*r));
	while ((len = ref_line(p + at, n - at)) == 2)
		at += 2;
	if (len <= 0)
		return len == 0 ? REF_MORE : REF_BAD;
	if ((size_t)len > sizeof(line))
		return REF_BAD;
	snprintf(line, sizeof(line), "%.*s", (int)len - 2,
	    (const char *)p + at);
	at += (size_t)len;
	if ((sp = strchr(line, ' ')) == NULL ||
	    (sp2 = strchr(sp + 1, ' ')) == NULL || strchr(sp2 + 1, ' '))
		return REF_BAD;
	*sp = *sp2 = '\0';
	if (!ref_is_token(line) || sp[1] == '\0' || strlen(sp2 + 1) != 8 ||
	    strncmp(sp2 + 1, "HTTP/1.", 7) != 0 ||
	    !isdigit((unsigned char)sp2[8]))
		return REF_BAD;
	http10 = sp2[8] == '0';
	for (;;) {
		len = ref_line(p + at, n - at);
		if (len <= 0)
			return len == 0 ? REF_MORE : REF_BAD;
		if ((size_t)len > sizeof(line))
			return REF_BAD;
		snprintf(line, sizeof(line), "%.*s", (int)len - 2,
		    (const char *)p + at);
		at += (size_t)len;
		if (len == 2)
			break;
		if (!ref_field(line, &seen, r))
			return REF_BAD;
	}
	r->head_len = at;
	return ref_body_of(&seen, http10, r);
}

/* Whether a chunk-ext is as the grammar says; s begins behind the size. */
static inline bool
ref_extension(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	while (*s == ';') {
		s++;
		while (*s == ' ' || *s == '\t')
			s++;
		if (!ref_token_char((unsigned char)*s))
			return false;
		while (ref_token_char((unsigned char)*s))
			s++;
		if (*s == '\0')
			return true;
		while (*s == ' ' || *s == '\t')
			s++;
		if (*s == ';')
			continue;
		if (*s++ != '=')
			return false;
		while (*s == ' ' || *s == '\t')
			s++;
		if (*s == '"') {
			for (s++; *s != '"'; s++) {
				if (*s == '\\')
					s++;
				if (*s == '\0' || *s == 127 ||
				    ((unsigned char)*s < 32 && *s != '\t'))
					return false;
			}
			s++;
		} else {
			if (!ref_token_char((unsigned char)*s))
				return false;
			while (ref_token_char((unsigned char)*s))
				s++;
		}
		if (*s == '\0')
			return true;
		while (*s == ' ' || *s == '\t')
			s++;
		if (*s != ';')
			return false;
	}
	return *s == '\0' && s[-1] != ' ' && s[-1] != '\t';
}

/* Decodes a chunked body; the payload goes to `out`, as large as p.  The
 * limits of extensions and trailers are not looked at here. */
static inline enum ref_verdict
ref_chunked(const uint8_t *p, size_t n, uint8_t *out, size_t *out_len,
    size_t *taken)
{
	static char line[70000];
	struct ref_seen *none = calloc(1, sizeof(*none));
	struct ref_request unused;
	enum ref_verdict verdict = REF_BAD;
	size_t at = 0;
	long len;

	*out_len = 0;
	for (;;) {
		size_t digits;
		unsigned long long size;

		len = ref_line(p + at, n - at);
		if (len <= 0) {
			verdict = len == 0 ? REF_MORE : REF_BAD;
			goto out;
		}
		if ((size_t)len > sizeof(line))
			goto out;
		snprintf(line, sizeof(line), "%.*s", (int)len - 2,
		    (const char *)p + at);
		at += (size_t)len;
		digits = strspn(line, "0123456789abcdefABCDEF");
		if (digits == 0 || digits > 16 || !ref_extension(line + digits))
			goto out;
		size = strtoull(line, NULL, 16);
		if (size > 9223372036854775807ULL)
			goto out;
		if (size == 0)
			break;
		if (size > n - at) {
			memcpy(out + *out_len, p + at, n - at);
			*out_len += n - at;
			verdict = REF_MORE;
			goto out;
		}
		memcpy(out + *out_len, p + at, size);
		*out_len += size;
		at += size;
		if (n - at < 2) {
			verdict =
			    n - at == 1 && p[at] != '\r' ? REF_BAD : REF_MORE;
			goto out;
		}
		if (p[at] != '\r' || p[at + 1] != '\n')
			goto out;
		at += 2;
	}
	do {
		len = ref_line(p + at, n - at);
		if (len <= 0) {
			verdict = len == 0 ? REF_MORE : REF_BAD;
			goto out;
		}
		if ((size_t)len > sizeof(line))
			goto out;
		snprintf(line, sizeof(line), "%.*s", (int)len - 2,
		    (const char *)p + at);
		at += (size_t)len;
		if (len > 2 && !ref_field(line, none, &unused))
			goto out;
	} while (len > 2);
	*taken = at;
	verdict = REF_OK;
out:
	free(none);
	return verdict;
}

#endif
