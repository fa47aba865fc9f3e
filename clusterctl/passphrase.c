/* passphrase.c: see passphrase.h. */
#include "clusterctl/passphrase.h"

#include <limits.h>
#include <string.h>

#include "common/base/secret.h"
#include "common/base/text.h"

static int read_again(const char *first, struct err *);

int
passphrase_read(const char *fd, bool is_new, char buf[PASSPHRASE_SIZE],
    struct err *e)
{
	uint64_t n = 0;
	int rv;

	if (fd != NULL &&
	    text_parse_u64("--passphrase-fd", fd, 0, INT_MAX, &n, e) == -1)
		return -1;
	if (secret_read_line(fd != NULL ? (int)n : -1,
		is_new ? "New passphrase for the authority key: " :
			 "Passphrase of the authority key: ",
		buf, PASSPHRASE_SIZE, e) == -1)
		return -1;
	if (*buf == '\0')
		return err_set(e, ERR_USAGE,
		    "an empty passphrase protects "
		    "nothing");
	if (!is_new || fd != NULL)
		return 0;
	rv = read_again(buf, e);
	if (rv == -1)
		secret_wipe(buf, PASSPHRASE_SIZE);
	return rv;
}

static int
read_again(const char *first, struct err *e)
{
	char again[PASSPHRASE_SIZE];
	int rv = 0;

	if (secret_read_line(-1, "Once more: ", again, sizeof(again), e) == -1)
		return -1;
	if (strcmp(first, again) != 0)
		rv = err_set(e, ERR_USAGE, "the two passphrases differ");
	secret_wipe(again, sizeof(again));
	return rv;
}
