import pytest

from recbulc.cli.console import core_numbers, duration_seconds
from recbulc.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("500ms", 0.5), ("90s", 90), ("10m", 600), ("2h", 7200), ("1.5d", 129_600)]
)
def test_durations(text, seconds):
    assert duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "-1", "1w", "ten", "1 s"])
def test_what_is_no_duration(text):
    with pytest.raises(InputError, match="not a duration"):
        duration_seconds(text)


def test_cores():
    assert core_numbers("0,1,4-6") == (0, 1, 4, 5, 6)
    for text in ("", "a", "1-", "1,,2"):
        with pytest.raises(InputError, match="names no cores"):
            core_numbers(text)
