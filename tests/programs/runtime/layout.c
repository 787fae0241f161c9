/* The structs that C and NumPy both describe: name, offset and size of every field, a line each. */
#include <stddef.h>
#include <stdio.h>

#include "rb_control.h"
#include "rb_event.h"

#define FIELD(type, name)                                                                                              \
    printf(#type " " #name " %zu %zu\n", offsetof(struct type, name), sizeof(((struct type *)0)->name))
#define KIND(name, number)  printf("kind " #name " %d 0\n", number);
#define INPUT(name, number) printf("input " #name " %d 0\n", number);

int main(void)
{
    FIELD(rb_event, before);
    FIELD(rb_event, after);
    FIELD(rb_event, object);
    FIELD(rb_event, value);
    FIELD(rb_event, old);
    FIELD(rb_event, site);
    FIELD(rb_event, call);
    FIELD(rb_event, core);
    FIELD(rb_event, core_after);
    FIELD(rb_event, kind);
    FIELD(rb_event, size);
    FIELD(rb_event, flags);
    printf("rb_event . %zu 0\n", sizeof(struct rb_event));
    RB_EVENT_KINDS(KIND)
    RB_INPUTS(INPUT)
    return 0;
}
