#include "part.h"

#include <string.h>

long part_sum = 100;
char part_name[32] = "part";

long part_add(long n)
{
    part_sum += n;
    memcpy(part_name + 4, part_name, (size_t)n);
    return part_sum;
}
