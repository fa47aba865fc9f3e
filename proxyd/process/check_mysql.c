/* check_mysql.c: see check_mysql.h. */
#include "proxyd/process/check_mysql.h"

#include <stdio.h>
#include <string.h>

#include "proxyd/http/writer.h"

#define HEADER	       4   /* length in three bytes, number */
#define PACKET_MAX     512 /* of those read here; none is longer */
#define GREETING_MIN   16  /* behind the server's version */
#define PROTOCOL_10    0x0a
#define COM_QUIT       0x01
#define COLLATION_UTF8 33

/* What the login announces: protocol 4.1, with the name of a plugin. */
#define CAPABILITIES (0x00000001 | 0x00000200 | 0x00008000 | 0x00080000)

static enum mysql_packet kind_of(const char *payload, size_t n, uint8_t seq);
static void tell_error(const char *payload, size_t n, char *text, size_t size);

static uint8_t
byte_at(const char *p)
{
	return (uint8_t)*p;
}

enum mysql_packet
mysql_read(const char *bytes, size_t n, uint8_t seq, size_t *size, char *text,
    size_t text_size)
{
	enum mysql_packet kind;
	size_t len;

	if (n < HEADER)
		return MYSQL_MORE;
	len = (size_t)byte_at(bytes) | (size_t)byte_at(bytes + 1) << 8 |
	    (size_t)byte_at(bytes + 2) << 16;
	if (len == 0 || len > PACKET_MAX - HEADER || byte_at(bytes + 3) != seq)
		return MYSQL_GARBAGE;
	if (n - HEADER < len)
		return MYSQL_MORE;
	kind = kind_of(bytes + HEADER, len, seq);
	if (kind == MYSQL_ERROR)
		tell_error(bytes + HEADER, len, text, text_size);
	*size = HEADER + len;
	return kind;
}

static enum mysql_packet
kind_of(const char *payload, size_t n, uint8_t seq)
{
	const char *end;

	switch (byte_at(payload)) {
	case 0xff:
		return n >= 3 ? MYSQL_ERROR : MYSQL_GARBAGE;
	case 0x00:
		return seq > 0 ? MYSQL_OK : MYSQL_GARBAGE;
	case 0xfe:
		return seq > 0 ? MYSQL_SWITCH : MYSQL_GARBAGE;
	case PROTOCOL_10:
		/* The version, a NUL, and what a login is made from. */
		end = memchr(payload, '\0', n);
		if (seq > 0 || end == NULL ||
		    (size_t)(payload + n - end) < GREETING_MIN)
			return MYSQL_GARBAGE;
		return MYSQL_GREETING;
	default:
		return MYSQL_GARBAGE;
	}
}

/* "1040 Too many connections", without the SQL state. */
static void
tell_error(const char *payload, size_t n, char *text, size_t size)
{
	unsigned code = byte_at(payload + 1) | byte_at(payload + 2) << 8;
	size_t at = n >= 9 && payload[3] == '#' ? 9 : 3, used;

	used = (size_t)snprintf(text, size, "%u ", code);
	for (; at < n && used + 1 < size; at++, used++)
		text[used] = payload[at] >= ' ' && payload[at] < 0x7f ?
		    payload[at] :
		    '?';
	if (used < size)
		text[used] = '\0';
}

/* --- what is said */

/* A packet's header stands before what is put behind it. */
static void
put_header(struct writer *w, size_t len, uint8_t seq)
{
	put(w,
	    (char[]){ (char)len, (char)(len >> 8), (char)(len >> 16),
		(char)seq },
	    HEADER);
}

size_t
mysql_write_login(char *out, size_t room, const char *user)
{
	static const char plugin[] = "mysql_native_password";
	static const char zeros[23];
	/* Capabilities, longest packet, collation, filler; user; the length of
	 * an empty answer; plugin. */
	size_t len =
	    4 + 4 + 1 + sizeof(zeros) + strlen(user) + 1 + 1 + sizeof(plugin);
	struct writer w;

	writer_init(&w, out, room);
	put_header(&w, len, 1);
	put(&w,
	    (char[]){ (char)CAPABILITIES, (char)(CAPABILITIES >> 8),
		(char)(CAPABILITIES >> 16), (char)(CAPABILITIES >> 24) },
	    4);
	put(&w, (char[]){ 0, 0, 1, 0, COLLATION_UTF8 }, 5);
	put(&w, zeros, sizeof(zeros));
	put(&w, user, strlen(user) + 1);
	put(&w, zeros, 1);
	put(&w, plugin, sizeof(plugin));
	return writer_size(&w);
}

size_t
mysql_write_empty(char *out, size_t room, uint8_t seq)
{
	struct writer w;

	writer_init(&w, out, room);
	put_header(&w, 0, (uint8_t)(seq + 1));
	return writer_size(&w);
}

size_t
mysql_write_quit(char *out, size_t room)
{
	struct writer w;

	writer_init(&w, out, room);
	put_header(&w, 1, 0);
	put(&w, (char[]){ COM_QUIT }, 1);
	return writer_size(&w);
}
