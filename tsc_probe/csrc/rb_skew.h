/*
 * The test hook: a software skew added to what one core's clock says.
 *
 * Guests cannot write the TSC, so tests show that calibration and change detection notice a skewed, drifting or narrow
 * clock by putting one in here. The skew is a pure function of the raw reading, applied when a worker stores a round's
 * stamps and never between two clock reads: timing is the same with and without it.
 */
#ifndef RB_SKEW_H
#define RB_SKEW_H

#include "rb_probe.h"

/* What core's clock reads as when its hardware counter reads `raw`. A null skew is the identity. */
static inline uint64_t rb_skew_apply(const struct rb_skew *skew, uint64_t raw)
{
    uint64_t tsc = raw + (uint64_t)skew->offset_ticks;

    if (skew->rate_ppm != 0.0)
        tsc += (uint64_t)(int64_t)((double)(int64_t)(raw - skew->origin) * skew->rate_ppm * 1e-6);
    if (skew->width_bits < 64)
        tsc &= (UINT64_C(1) << skew->width_bits) - 1;
    return tsc;
}

#endif
