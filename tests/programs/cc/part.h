/* Two translation units: one variable, one function, one exception's worth of code. */
extern long part_sum;
extern char part_name[32];
long part_add(long n);
