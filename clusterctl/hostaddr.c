/* hostaddr.c: see hostaddr.h. */
#include "clusterctl/hostaddr.h"

#include <sys/socket.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool from_route(struct addr *);
static bool from_interfaces(int family, struct addr *);
static bool is_usable(const struct addr *);

int
hostaddr_guess(uint16_t port, struct addr *a, struct err *e)
{
	struct addr found;

	if (!from_route(&found) && !from_interfaces(AF_INET, &found) &&
	    !from_interfaces(AF_INET6, &found))
		return err_set(e, ERR_USAGE,
		    "this machine has no address but loopback; say how "
		    "others reach it with --address IP[:PORT]");
	addr_set_port(&found, port);
	*a = found;
	return 0;
}

int
hostname_guess(char name[NAME_MAX_LEN + 1], struct err *e)
{
	char host[HOST_NAME_MAX + 1];
	size_t len;

	if (gethostname(host, sizeof(host)) == -1)
		return err_errno(e, ERR_USAGE,
		    "no host name; name this node with --name");
	host[sizeof(host) - 1] = '\0';
	len = strcspn(host, ".");
	host[len] = '\0';
	for (size_t i = 0; i < len; i++)
		host[i] = (char)tolower((unsigned char)host[i]);
	if (!name_valid(host))
		return err_set(e, ERR_USAGE,
		    "the host name '%.64s' is no node name; choose one with "
		    "--name",
		    host);
	memcpy(name, host, len + 1);
	return 0;
}

/* Connecting a datagram socket sends nothing; it only asks the kernel for
 * the route, here to an address of RFC 5737 that nobody has. */
static bool
from_route(struct addr *a)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr far;
	struct err ignored;
	bool found = false;
	int fd;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return false;
	if (addr_parse("192.0.2.1", 9, &far, &ignored) == 0 &&
	    connect(fd, &far.u.sa, far.len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&ss, &len) == 0 &&
	    addr_from_sockaddr((struct sockaddr *)&ss, len, a) == 0)
		found = is_usable(a);
	close(fd);
	return found;
}

static bool
from_interfaces(int family, struct addr *a)
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) == -1)
		return false;
	for (struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
		if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0 ||
		    i->ifa_addr->sa_family != family)
			continue;
		found = addr_from_sockaddr(i->ifa_addr,
			    family == AF_INET ? sizeof(struct sockaddr_in) :
						sizeof(struct sockaddr_in6),
			    a) == 0 &&
		    is_usable(a);
	}
	freeifaddrs(all);
	return found;
}

static bool
is_usable(const struct addr *a)
{
	static const char *const never[] = { "127.0.0.0/8", "0.0.0.0/8",
		"169.254.0.0/16", "::1", "fe80::/10" };

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		struct cidr c;
		struct err ignored;

		if (cidr_parse(never[i], &c, &ignored) == 0 &&
		    cidr_contains(&c, a))
			return false;
	}
	return true;
}
