/*
 * check_mysql.h: the first packets of the MySQL protocol, as far as a health
 * check reads and writes them.  Servers of MySQL and MariaDB speak first: a
 * greeting, or an error such as "Too many connections".
 */
#ifndef MUSTER_CHECK_MYSQL_H
#define MUSTER_CHECK_MYSQL_H

#include <stddef.h>
#include <stdint.h>

enum mysql_packet {
	MYSQL_MORE,    /* not all of it is there */
	MYSQL_GARBAGE, /* no such server */
	MYSQL_GREETING,
	MYSQL_OK,
	MYSQL_SWITCH, /* another way to log in is wanted */
	MYSQL_ERROR,
};

/*
 * Reads a packet, number `seq` of its exchange, which is a greeting only if
 * that is 0.  Of an error, what it says is put into `text`: the code and the
 * message, printable.  *size: what it takes of the bytes.
 */
enum mysql_packet mysql_read(const char *bytes, size_t n, uint8_t seq,
    size_t *size, char *text, size_t text_size);

/* The answer to a greeting: log in without a password.  Its size. */
size_t mysql_write_login(char *out, size_t room, const char *user);
/* An empty answer to MYSQL_SWITCH, with the number behind its `seq`. */
size_t mysql_write_empty(char *out, size_t room, uint8_t seq);
/* Good bye: what the server does not count as an aborted connection. */
size_t mysql_write_quit(char *out, size_t room);

#endif
