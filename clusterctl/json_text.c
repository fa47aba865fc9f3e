/* json_text.c: see json_text.h. */
#include "clusterctl/json_text.h"

#include <sodium.h>
#include <stdint.h>
#include <string.h>

#define BASE64_PIECE 3072 /* bytes at a time: a multiple of 3 */

static size_t utf8_length(const char *bytes, size_t n);
static void write_string(FILE *, const char *bytes, size_t n);
static void write_base64(FILE *, const char *bytes, size_t n);

bool
json_text_is_utf8(const char *bytes, size_t n)
{
	while (n > 0) {
		size_t len = utf8_length(bytes, n);

		if (len == 0)
			return false;
		bytes += len;
		n -= len;
	}
	return true;
}

void
json_text_member(FILE *f, const char *name, const char *bytes, size_t n)
{
	if (json_text_is_utf8(bytes, n)) {
		fprintf(f, ",\"%s\":\"", name);
		write_string(f, bytes, n);
	} else {
		fprintf(f, ",\"%s_base64\":\"", name);
		write_base64(f, bytes, n);
	}
	fputc('"', f);
}

/* Bytes of the character at the front; 0: there is none (RFC 3629). */
static size_t
utf8_length(const char *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	len = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 :
	    (p[0] & 0xf0) == 0xe0	   ? 3 :
	    p[0] >= 0xf0 && p[0] <= 0xf4   ? 4 :
					     0;
	if (len == 0 || len > n)
		return 0;
	switch (p[0]) {
	case 0xe0:
		low = 0xa0;
		break;
	case 0xed:
		high = 0x9f;
		break;
	case 0xf0:
		low = 0x90;
		break;
	case 0xf4:
		high = 0x8f;
		break;
	}
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static void
write_string(FILE *f, const char *bytes, size_t n)
{
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		fwrite(bytes + from, 1, i - from, f);
		from = i + 1;
		if (c == '\n')
			fputs("\\n", f);
		else if (c == '\t')
			fputs("\\t", f);
		else if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else
			fprintf(f, "\\u%04x", c);
	}
	fwrite(bytes + from, 1, n - from, f);
}

static void
write_base64(FILE *f, const char *bytes, size_t n)
{
	char text[BASE64_PIECE / 3 * 4 + 1];

	while (n > 0) {
		size_t piece = n < BASE64_PIECE ? n : BASE64_PIECE;

		sodium_bin2base64(text, sizeof(text),
		    (const unsigned char *)bytes, piece,
		    sodium_base64_VARIANT_ORIGINAL);
		fputs(text, f);
		bytes += piece;
		n -= piece;
	}
}
