"""The headers of our bugs say what they must."""

import pytest
from tests.programs.catalogue import BUGS

BY_NAME = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)


def test_all_twelve_are_there():
    assert len(BUGS) >= 12
    assert {bug.how for bug in BUGS.values()} == {"exit", "signal", "deadlock", "regex"}


@BY_NAME
def test_a_bug_has_a_twin_and_true_lines(bug):
    text = bug.path.read_text()
    assert 40 <= text.count("\n") <= 120
    assert "FIXED" in text
    assert "sleep" not in text
    for group in bug.racing:
        assert bug.is_truth((bug.path.name, line) for line in group)
    assert not bug.is_truth([(bug.path.name, 1)])
    assert not bug.is_truth([])


def test_a_pair_that_is_partly_wrong_is_not_the_truth():
    bug = BUGS["two_locks"]
    pair = [(str(bug.path), line) for line in bug.racing[0]]
    assert bug.is_truth(pair)
    assert bug.is_truth([*pair, *((str(bug.path), line) for line in bug.also)])
    assert not bug.is_truth(pair[:1])
    assert not bug.is_truth([*pair, (str(bug.path), 2)])
    assert not bug.is_truth([*pair, ("elsewhere.c", pair[0][1])])
