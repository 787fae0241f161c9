"""Random and fixed programs for the simulator."""

from __future__ import annotations

import random

from tests.unit.solver.simulate import Program, Simulator, Want, main_of

from recbulc.ordering.events import Recording
from recbulc.recorders.events import Kind

VARIABLES = [0x1000 + 8 * i for i in range(4)]
MUTEXES, RWLOCK, SPIN = [0x2000, 0x2040], 0x2080, 0x20C0
SEMAPHORE, BARRIER, ONCE, CONDITION, COND_MUTEX, FLAG = 0x2100, 0x2140, 0x2180, 0x21C0, 0x2200, 0x1100
RECURSIVE = 0x2240
POINTER = 0x1200


def access(rng: random.Random) -> Want:
    """Any access to a shared variable, of any size, small values."""
    size = rng.choice([1, 2, 4, 8, 8, 8])
    address = rng.choice(VARIABLES) + size * rng.randrange(8 // size)
    kind = rng.choice([Kind.READ, Kind.READ, Kind.WRITE, Kind.RMW])
    if kind == Kind.READ:
        return (kind, address, size)
    if kind == Kind.WRITE:
        return (kind, address, size, rng.randrange(4))
    step = rng.randrange(3)
    return (kind, address, size, lambda old: old + step)


def increments(rng: random.Random, times: int, address: int = VARIABLES[0]) -> Program:
    """The lost update."""
    for _ in range(times):
        value = yield (Kind.READ, address, 8)
        yield (Kind.WRITE, address, 8, value + 1)
        if rng.random() < 0.2:
            yield (Kind.READ, address, 4)


def worker(rng: random.Random, length: int) -> Program:  # noqa: PLR0912
    """A bit of everything."""
    for _ in range(length):
        what = rng.randrange(12)
        if what <= 4:
            yield access(rng)
        elif what == 5:
            mutex = rng.choice(MUTEXES)
            if rng.random() < 0.3:
                if (yield (Kind.MUTEX_TRYLOCK, mutex)):
                    continue
            else:
                yield (Kind.MUTEX_LOCK, mutex)
            for _ in range(rng.randrange(3)):
                yield access(rng)
            yield (Kind.MUTEX_UNLOCK, mutex)
        elif what == 6:
            yield (rng.choice([Kind.RW_RDLOCK, Kind.RW_WRLOCK]), RWLOCK)
            yield access(rng)
            yield (Kind.RW_UNLOCK, RWLOCK)
        elif what == 7:
            yield (Kind.SPIN_LOCK, SPIN)
            yield access(rng)
            yield (Kind.SPIN_UNLOCK, SPIN)
        elif what == 8:
            yield (Kind.SEM_POST, SEMAPHORE)
            yield access(rng)
            if rng.random() < 0.5:
                yield (Kind.SEM_TRYWAIT, SEMAPHORE)
            else:
                yield (Kind.SEM_WAIT, SEMAPHORE)
        elif what == 9:
            yield (Kind.ONCE, ONCE, lambda: iter_access(rng))
        elif what == 10:
            yield (Kind.MUTEX_LOCK, RECURSIVE, True)
            yield (Kind.MUTEX_LOCK, RECURSIVE, True)
            yield access(rng)
            yield (Kind.MUTEX_UNLOCK, RECURSIVE)
            yield access(rng)
            yield (Kind.MUTEX_UNLOCK, RECURSIVE)
        else:
            block = yield (Kind.MALLOC, 0, 32, rng.random() < 0.5)
            yield (Kind.WRITE, POINTER, 8, block)
            yield (Kind.WRITE, block, 8, rng.randrange(3))
            other = yield (Kind.READ, POINTER, 8)
            yield (Kind.READ, other + 4, 4)  # perhaps freed
            yield (Kind.READ, other, 8)
            yield (Kind.FREE, block, 32)


def iter_access(rng: random.Random) -> Program:
    yield access(rng)
    yield access(rng)


def hand_over(rng: random.Random, times: int, producer: bool, lossy: bool = False) -> Program:
    """A producer and consumers with a condition; `lossy` checks outside the mutex, so that a wake-up can get lost."""
    for _ in range(times):
        yield (Kind.MUTEX_LOCK, COND_MUTEX)
        if producer:
            value = yield (Kind.READ, FLAG, 4)
            yield (Kind.WRITE, FLAG, 4, value + 1)
            if not lossy:
                yield (rng.choice([Kind.COND_SIGNAL, Kind.COND_BROADCAST]), CONDITION)
            yield (Kind.MUTEX_UNLOCK, COND_MUTEX)
            if lossy:
                yield (Kind.COND_SIGNAL, CONDITION)
        else:
            timed = rng.random() < 0.3
            if lossy:
                yield (Kind.COND_WAIT, CONDITION, COND_MUTEX)
            while not lossy and not (yield (Kind.READ, FLAG, 4)):
                yield (Kind.COND_WAIT, CONDITION, COND_MUTEX, timed)
            value = yield (Kind.READ, FLAG, 4)
            yield (Kind.WRITE, FLAG, 4, value - 1)
            yield (Kind.MUTEX_UNLOCK, COND_MUTEX)


def barriers(rng: random.Random, rounds: int) -> Program:
    for _ in range(rounds):
        yield access(rng)
        yield (Kind.BARRIER_WAIT, BARRIER)
        yield access(rng)
        yield (Kind.BARRIER_WAIT, BARRIER)


def crashing(rng: random.Random, length: int) -> Program:
    for _ in range(length):
        yield access(rng)
    yield (Kind.SIGNAL, 0, 11)


def simulated(
    seed: int, style: str, threads: int = 2, length: int = 8, **options: float
) -> tuple[Simulator, Recording]:
    """One run; styles: mixed, increments, conditions, lossy, barriers, crash."""
    rng = random.Random(seed * 7919 + 1)
    simulator = Simulator(seed, cores=rng.choice([1, 2, 2, threads]), **options)
    before: list[Want] = [(Kind.SEM_INIT, SEMAPHORE, rng.randrange(2)), (Kind.MUTEX_INIT, RECURSIVE, 1)]
    if style == "mixed":
        workers = [worker(rng, length) for _ in range(threads)]
    elif style == "increments":
        workers = [increments(rng, length) for _ in range(threads)]
    elif style in ("conditions", "lossy"):
        half = max(1, threads // 2)
        consumers = [hand_over(rng, length, False, style == "lossy") for _ in range(half)]
        workers = [*consumers, *(hand_over(rng, length, True, style == "lossy") for _ in range(half))]
    elif style == "barriers":
        before.append((Kind.BARRIER_INIT, BARRIER, threads))
        workers = [barriers(rng, length) for _ in range(threads)]
    else:
        workers = [crashing(rng, length), *(worker(rng, length) for _ in range(threads - 1))]
    return simulator, simulator.run(main_of(workers, before))


STYLES = ("mixed", "increments", "conditions", "lossy", "barriers", "crash")
