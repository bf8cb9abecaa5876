/* What a program of somebody else does with the installed library: include, link, call. */
#include <cudamem/cudamem.h>

#include <stdio.h>

int main(void)
{
    printf("%s\n", cudamem_version());
    return cudamem_version() ? 0 : 1;
}
