/* main.c: proxyd. */
#include <stdio.h>

int
main(void)
{
	puts("proxyd " MUSTER_VERSION);
	return 0;
}
