"""The records of a trace as NumPy sees them: rb_event.h, in Python."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

EVENT = np.dtype(
    [
        ("before", "<u8"),
        ("after", "<u8"),
        ("object", "<u8"),
        ("value", "<u8"),
        ("old", "<u8"),
        ("site", "<u4"),
        ("call", "<u4"),
        ("core", "<u2"),
        ("core_after", "<u2"),
        ("kind", "u1"),
        ("size", "u1"),
        ("flags", "<u2"),
    ]
)

POISON = 0xDB


class Kind(IntEnum):
    """What happened; rb_event.h says what object, value and old are."""

    THREAD_START = 1
    THREAD_END = 2
    READ = 3
    WRITE = 4
    RMW = 5
    FUNC_ENTRY = 8
    FUNC_EXIT = 9
    LOOP_ENTRY = 10
    LOOP_BACK = 11
    LOOP_EXIT = 12
    MALLOC = 16
    FREE = 17
    CREATE = 20
    JOIN = 21
    DETACH = 22
    MUTEX_LOCK = 24
    MUTEX_TRYLOCK = 25
    MUTEX_UNLOCK = 26
    COND_WAIT = 28
    COND_SIGNAL = 29
    COND_BROADCAST = 30
    RW_RDLOCK = 32
    RW_WRLOCK = 33
    RW_TRYRDLOCK = 34
    RW_TRYWRLOCK = 35
    RW_UNLOCK = 36
    SPIN_LOCK = 40
    SPIN_TRYLOCK = 41
    SPIN_UNLOCK = 42
    SEM_WAIT = 44
    SEM_TRYWAIT = 45
    SEM_POST = 46
    BARRIER_WAIT = 48
    ONCE = 49
    MUTEX_INIT = 52
    MUTEX_DESTROY = 53
    SEM_INIT = 54
    BARRIER_INIT = 55
    INPUT = 60
    EXIT = 64
    SIGNAL = 65
    LOST = 66


class Flag(IntFlag):
    """Of an event."""

    ATOMIC = 1
    RAN = 2
    ZERO = 4
    TIMED = 8


class Input(IntEnum):
    """Which call an INPUT event is the result of."""

    TIME = 1
    GETTIMEOFDAY = 2
    CLOCK_GETTIME = 3
    RAND = 4
    RANDOM = 5
    GETPID = 6
