"""The sites of a schedule in another build."""

from tests.unit.replay.test_compile import made

from recbulc.recorders.events import Kind
from recbulc.replay.rebuild import first_lacking, match_sites
from recbulc.schedule import Op, Site


def site(number, line, column=5, kind="BEFORE_READ", function="f", file="src/a.c", ordinal=0):
    return Site(number, kind, function, file, line, column, ordinal)


def test_unchanged_lines_are_found_wherever_the_file_lies_and_however_they_are_numbered():
    recorded = [site(1, 10), site(2, 10, ordinal=1), site(3, 12, kind="BEFORE_WRITE")]
    there = [site(31, 10, file="b/a.c"), site(32, 10, ordinal=1, file="b/a.c"), site(33, 12, kind="BEFORE_WRITE")]
    assert match_sites(recorded, there) == {0: 31, 1: 32, 2: 33}


def test_lines_put_in_move_what_is_below_them():
    recorded = [site(1, 10), site(2, 12), site(3, 14, 9)]
    there = [site(1, 10), site(2, 13), site(3, 14), site(4, 16, 9)]  # line 11 is new, and so is an access in line 13
    found = match_sites(recorded, there)
    assert found[0] == 1
    assert found[1] in {2, 3}
    assert found[2] == 4


def test_a_schedule_has_only_some_of_the_sites():
    there = [site(n, n) for n in range(1, 30)]
    assert match_sites([site(5, 5), site(20, 20)], there) == {0: 5, 1: 20}


def test_other_functions_kinds_and_files_are_others():
    there = [site(1, 10, function="g"), site(2, 10, kind="BEFORE_WRITE"), site(3, 10, file="b.c")]
    assert match_sites([site(1, 10)], there) == {}


def test_what_moved_in_line_and_column_is_gone():
    assert match_sites([site(1, 10, 5)], [site(1, 30, 9)]) == {}


def test_the_first_operation_in_the_total_order_that_is_not_there():
    one = [Op(Kind.READ, 0, 0, order=0), Op(Kind.READ, 1, 0, order=7)]
    two = [Op(Kind.MUTEX_LOCK, 3, 0, order=1), Op(Kind.WRITE, 2, 0, order=3)]
    sites = [site(1, 1), site(2, 2), site(3, 3), site(4, 4, kind="CALL")]
    schedule = made({"0": one, "0.1": two}, sites)
    lacking = first_lacking(schedule, {0: 1, 3: 4})
    assert (lacking.thread, lacking.position) == ("0.1", 1)
    assert first_lacking(schedule, {0: 1, 1: 2, 2: 3}).op.kind == Kind.MUTEX_LOCK
    assert first_lacking(schedule, {0: 1, 1: 2, 2: 3, 3: 4}) is None
