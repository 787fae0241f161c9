#include <stdio.h>

#include "part.h"

int main(int argc, char **argv)
{
    long sum = 0;

    (void)argv;
    for (int i = 0; i < 3; i++)
        sum += part_add(i + argc);
    printf("%ld %ld %s\n", sum, part_sum, part_name);
    return 0;
}
