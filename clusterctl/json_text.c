/* json_text.c: see json_text.h. */
#include "clusterctl/json_text.h"

#include <sodium.h>
#include <stdint.h>
#include <string.h>

#include "common/base/text.h"

#define BASE64_PIECE 3072 /* bytes at a time: a multiple of 3 */

static void write_string(FILE *, const char *bytes, size_t n);
static void write_base64(FILE *, const char *bytes, size_t n);

void
json_text_member(FILE *f, const char *name, const char *bytes, size_t n)
{
	if (text_is_utf8(bytes, n)) {
		fprintf(f, ",\"%s\":\"", name);
		write_string(f, bytes, n);
	} else {
		fprintf(f, ",\"%s_base64\":\"", name);
		write_base64(f, bytes, n);
	}
	fputc('"', f);
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
