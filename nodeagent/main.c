/* main.c: nodeagent. */
#include <stdio.h>

int
main(void)
{
	puts("nodeagent " MUSTER_VERSION);
	return 0;
}
