"""What raced, read off an order: pairs by pattern, by value and by structure, and what a flip would hold."""

from tests.unit.solver.made import COND, LOCK, X, Y, call, read, trace_of, workers, write

from recbulc.recorders.events import POISON, Kind
from recbulc.solver.conflict_order import reduce_order, up_to_failure
from recbulc.solver.racing import Race, find_race, first_of
from recbulc.solver.solve import find_order

SURE = 5  # the clocks agree within this: stamps 20 apart are ordered
POISONED = int.from_bytes(bytes([POISON]) * 8, "little")


def at(place, row):
    """A row that happens at this place of the order, and at line 10 × place."""
    return row | {"before": 10_020 + 20 * place, "after": 10_024 + 20 * place, "site": place}


def called(place, kind, thing=0, value=0, **more):
    return at(place, call(kind, thing, value)) | {"site": 0, "call": place} | more


def race_of(*rows, how="exit", deadlocked=False, **more) -> Race:
    recording = workers(*rows, slack=SURE, deadlocked=deadlocked, **more)
    found = find_order(recording)
    assert found.status == "sat", found.why
    order = up_to_failure(found.problem, list(found.order), signalled=how == "signal")
    return find_race(trace_of(recording, how), found.problem, reduce_order(found.problem, order))


def lines(racing):
    return [(access.line, access.thread, access.kind) for access in racing]


def test_a_lost_update_is_the_write_that_came_between_reading_and_writing():
    race = race_of(
        [at(1, read(X, 0)), at(3, write(X, 1))],
        [at(2, read(X, 0)), at(4, write(X, 1))],
        before=(write(X, 0),),
        after=(read(X, 1),),
    )
    assert lines(race.racing) == [(20, "0.2", "read"), (30, "0.1", "write")]
    assert not race.certain
    assert [lines(candidate.racing)[1][0] for candidate in first_of(race.candidates)] == [40, 30]


def test_what_is_ordered_by_creating_the_thread_is_no_candidate():
    race = race_of([at(1, read(X, 7))], [at(2, read(Y, 0))], before=(write(X, 7) | {"site": 9},))
    assert list(first_of(race.candidates)) == []
    assert race.racing == ()


def section(place, *rows):
    return [called(place, Kind.MUTEX_LOCK, LOCK), *rows, called(place + len(rows) + 1, Kind.MUTEX_UNLOCK, LOCK)]


def test_a_flip_holds_whole_sections_of_a_common_lock():
    race = race_of(
        [*section(1, at(2, read(X, 0))), *section(7, at(8, write(X, 1)))],
        [*section(4, at(5, read(X, 0))), *section(10, at(11, write(X, 2)))],
        before=(write(X, 0),),
    )
    assert lines(race.racing) == [(50, "0.2", "read"), (80, "0.1", "write")]
    decisive = next(found for found in first_of(race.candidates) if lines(found.racing) == lines(race.racing))
    assert decisive.held == (2, 0)  # thread 2 at its first lock ...
    assert decisive.until == (1, 5)  # ... until thread 1 has unlocked for the second time
    assert decisive.torn


def test_a_cycle_of_locks_is_certain():
    other = LOCK + 64
    blocked = {"after": 0}
    race = race_of(
        [called(1, Kind.MUTEX_LOCK, LOCK), called(3, Kind.MUTEX_LOCK, other) | blocked],
        [called(2, Kind.MUTEX_LOCK, other), called(4, Kind.MUTEX_LOCK, LOCK) | blocked],
        how="deadlock",
        deadlocked=True,
    )
    assert race.certain
    assert sorted(lines(race.racing)) == [(30, "0.1", "lock"), (40, "0.2", "lock")]


def test_a_signal_before_its_waiter_is_certain():
    race = race_of(
        [called(1, Kind.MUTEX_LOCK, LOCK), called(3, Kind.COND_WAIT, COND, old=LOCK) | {"after": 0}],
        [called(2, Kind.COND_SIGNAL, COND)],
        how="deadlock",
        deadlocked=True,
    )
    assert race.certain
    assert lines(race.racing) == [(20, "0.2", "signal"), (30, "0.1", "wait")]


def crash(pointer, fault, *theirs, **more):
    """Thread 1 reads a pointer at place 5 and faults near it."""
    mine = [at(5, read(X, pointer)), at(6, read(fault, 0)) | {"after": 0}, called(7, Kind.SIGNAL, 0, 11)]
    return race_of(mine, list(theirs), how="signal", deadlocked=True, **more)


def test_a_crash_by_a_null_pointer_names_who_wrote_it():
    race = crash(0, 16, at(1, write(X, 0x5000)), at(2, write(X, 0)))
    assert race.certain
    assert lines(race.racing) == [(20, "0.2", "write"), (50, "0.1", "read")]


def test_a_crash_by_what_lay_in_a_freed_block_names_who_freed_it():
    free = called(3, Kind.FREE, X - 8, 64)
    race = crash(POISONED, POISONED + 8, at(1, write(X, 0x5000)), free)
    assert lines(race.racing) == [(30, "0.2", "write"), (50, "0.1", "read")]


def test_a_read_whose_writer_the_run_never_came_to_is_half_a_race():
    race = crash(0, 24, at(1, write(Y, 1)))
    assert not race.certain
    assert lines([race.half]) == [(50, "0.1", "read")]


def test_a_value_that_has_nothing_to_do_with_the_crash_is_not_blamed():
    race = crash(0x7000, 0x900000, at(1, write(X, 0x7000)))
    assert not race.certain
    assert race.half is None


def test_small_numbers_are_no_pointers():
    """A counter that was 3 did not lead to address 24; the NULL that was read before it did."""
    mine = [at(4, read(X, 0)), at(5, read(Y, 3)), at(6, read(24, 0)) | {"after": 0}, called(7, Kind.SIGNAL, 0, 11)]
    race = race_of(mine, [at(1, write(X, 0)), at(2, write(Y, 3))], how="signal", deadlocked=True)
    assert lines(race.racing) == [(10, "0.2", "write"), (40, "0.1", "read")]
    assert race.certain


def test_two_reads_that_may_have_led_to_a_crash_leave_it_open():
    mine = [at(4, read(X, 0)), at(5, read(Y, 0)), at(6, read(24, 0)) | {"after": 0}, called(7, Kind.SIGNAL, 0, 11)]
    race = race_of(mine, [at(1, write(X, 0)), at(2, write(Y, 0))], how="signal", deadlocked=True)
    assert lines(race.racing) == [(20, "0.2", "write"), (50, "0.1", "read")]
    assert not race.certain


def test_what_main_wrote_before_it_created_the_thread_does_not_race():
    mine = [at(5, read(X, 0)), at(6, read(16, 0)) | {"after": 0}, called(7, Kind.SIGNAL, 0, 11)]
    race = race_of(mine, [at(1, write(Y, 1))], how="signal", deadlocked=True, before=(write(X, 0) | {"site": 9},))
    assert lines([race.half]) == [(50, "0.1", "read")]


def test_a_signal_that_woke_someone_is_not_lost():
    def waits(place, **more):
        return called(place, Kind.COND_WAIT, COND, old=LOCK) | more

    woken = at(2, {})["before"], at(4, {})["after"]
    race = race_of(
        [called(1, Kind.MUTEX_LOCK, LOCK), waits(2, before=woken[0], after=woken[1]), waits(5, after=0)],
        [called(3, Kind.COND_SIGNAL, COND)],
        how="deadlock",
        deadlocked=True,
    )
    assert not race.certain
