/* main.c: clusterctl. */
#include <stdio.h>

int
main(void)
{
	puts("clusterctl " MUSTER_VERSION);
	return 0;
}
