/*
 * When to start, so that a race is lost as often as it is won.
 *
 * A race that one side always wins tells nothing of the other outcome. The side that adapts starts a little later
 * after being first and a little earlier after being second; many equal outcomes in a row lengthen the step.
 */
#ifndef RB_STAIRCASE_H
#define RB_STAIRCASE_H

#include <stdbool.h>
#include <stdint.h>

#define RB_START_LEAD   1500   /* cycles the other side waits: longer than a go signal takes to arrive */
#define RB_START_MOST   100000 /* cycles; the far end of the adaptation */
#define RB_START_STEP   4      /* cycles by which the start follows an outcome ... */
#define RB_START_STREAK 8      /* ... doubled with every further equal outcome after this many, up to 2^8 */

struct rb_staircase {
    uint32_t start; /* cycles after the go signal */
    uint32_t streak;
    bool was_first;
};

static inline void rb_staircase_follow(struct rb_staircase *stairs, bool first)
{
    uint32_t step = RB_START_STEP;

    stairs->streak = first == stairs->was_first ? stairs->streak + 1 : 0;
    stairs->was_first = first;
    if (stairs->streak > RB_START_STREAK)
        step <<= stairs->streak < RB_START_STREAK + 8 ? stairs->streak - RB_START_STREAK : 8;
    if (first)
        stairs->start = stairs->start + step < RB_START_MOST ? stairs->start + step : RB_START_MOST;
    else
        stairs->start = stairs->start > step ? stairs->start - step : 0;
}

#endif
