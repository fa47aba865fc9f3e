/* secret.c: see secret.h. */
#include "common/base/secret.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/io.h"

static int read_line(int fd, char *buf, size_t size, struct err *);

int
secret_init(struct err *e)
{
	static const struct rlimit no_core = { 0, 0 };

	if (sodium_init() == -1)
		return err_set(e, ERR_LOCAL,
		    "libsodium does not start: no source of randomness?");
	if (setrlimit(RLIMIT_CORE, &no_core) == -1)
		return err_errno(e, ERR_LOCAL, "cannot forbid core dumps");
	prctl(PR_SET_DUMPABLE, 0);
	return 0;
}

void
secret_wipe(void *p, size_t n)
{
	sodium_memzero(p, n);
}

void
secret_scrub_arg(char *arg)
{
	sodium_memzero(arg, strlen(arg));
}

int
secret_read_line(int fd, const char *prompt, char *buf, size_t size,
    struct err *e)
{
	struct termios was, quiet;
	int tty, rv;

	if (fd != -1)
		return read_line(fd, buf, size, e);
	if ((tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) == -1 ||
	    tcgetattr(tty, &was) == -1) {
		io_close(&tty);
		return err_set(e, ERR_USAGE,
		    "a passphrase is needed and there is no terminal to ask "
		    "on (give it with --passphrase-fd N)");
	}
	quiet = was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	tcsetattr(tty, TCSAFLUSH, &quiet);
	io_write_n(tty, prompt, strlen(prompt));
	rv = read_line(tty, buf, size, e);
	io_write_n(tty, "\n", 1);
	tcsetattr(tty, TCSAFLUSH, &was);
	close(tty);
	return rv;
}

/* A byte at a time: what follows the line stays for whoever reads next. */
static int
read_line(int fd, char *buf, size_t size, struct err *e)
{
	size_t n = 0;

	for (;;) {
		ssize_t r = io_read_n(fd, buf + n, 1);

		if (r == -1)
			return err_errno(e, ERR_LOCAL,
			    "cannot read the secret from descriptor %d", fd);
		if (r == 0 || buf[n] == '\n')
			break;
		if (++n == size) {
			sodium_memzero(buf, size);
			return err_set(e, ERR_USAGE,
			    "the secret is longer than %zu bytes", size - 1);
		}
	}
	buf[n] = '\0';
	return 0;
}
