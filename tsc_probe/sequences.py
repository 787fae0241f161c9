"""The stamp sequences of `rb_clock.h`, by name and in its order (ReCBuLC §3.1, Fig. 2)."""

from __future__ import annotations

SEQUENCES = ("rdtsc", "rdtscp", "2c", "2d", "2e", "card")
SOUND_SEQUENCES = ("2c", "2d", "2e", "card")
