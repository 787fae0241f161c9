import json
import re
from dataclasses import replace

import pytest

from recbulc.calibration.interval import Interval
from recbulc.calibration.model import VERSION, checksum, load_model
from recbulc.errors import InputError


@pytest.fixture
def saved(simulate, tmp_path):
    model = simulate([0, 50, 10])
    path = tmp_path / "clocks.json"
    model.save(path)
    return model, path


def edited(path, **changes):
    content = json.loads(path.read_text())
    content.update(changes)
    del content["checksum"]
    content["checksum"] = checksum(content)
    path.write_text(json.dumps(content))
    return path


def test_a_model_comes_back_as_it_was(saved):
    model, path = saved
    assert load_model(path, model.machine) == model
    assert json.loads(path.read_text())["pairs"][0]["sound"] == [model.pairs[0].sound.lo, model.pairs[0].sound.hi]


def test_directions_and_the_core_itself(saved):
    model, _ = saved
    there, back = model.interval(0, 1), model.interval(1, 0)
    assert there == back.reversed()
    assert model.interval(2, 2) == Interval(0, 0)
    assert model.interval(0, 1, "confident") == model.pair(0, 1).confident
    with pytest.raises(InputError, match="no pair of the cores 0 and 9"):
        model.interval(0, 9)


def test_intervals_widen_by_the_drift_since_the_calibration(saved):
    model, _ = saved
    pair = model.pair(0, 1)
    second_later = model.interval(0, 1, at_boottime_ns=pair.boottime_ns + 10**9)
    drift = model.hz * 0.1e-6
    assert second_later == pair.sound.widened(drift)
    assert model.interval(0, 1, at_boottime_ns=pair.boottime_ns) == pair.sound


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("boot_id", "another", "another boot"), ("cpu", "another", "another machine"), ("cores", 64, "another machine")],
)
def test_a_model_of_elsewhere_is_refused(saved, field, value, reason):
    model, path = saved
    with pytest.raises(InputError, match=reason):
        load_model(path, replace(model.machine, **{field: value}))


def test_a_model_of_another_version_or_kind_is_refused(saved):
    model, path = saved
    with pytest.raises(InputError, match=f"version {VERSION + 1}"):
        load_model(edited(path, version=VERSION + 1), model.machine)
    with pytest.raises(InputError, match="not a clock model"):
        load_model(edited(path, format="something else"), model.machine)


def test_injected_clocks_are_for_tests_only(saved):
    model, path = saved
    edited(path, injected=True)
    with pytest.raises(InputError, match="injected skews"):
        load_model(path, model.machine)
    assert load_model(path, model.machine, allow_injected=True).injected


@pytest.mark.parametrize(
    ("field", "value"),
    [("sound", [10, -10]), ("stretches", []), ("stretches", [[]]), ("stretches", [["x"]]), ("cores", [0])],
)
def test_pairs_that_cannot_be_are_damage(saved, field, value):
    model, path = saved
    pairs = json.loads(path.read_text())["pairs"]
    pairs[0][field] = value
    with pytest.raises(InputError, match="damaged"):
        load_model(edited(path, pairs=pairs), model.machine)


@pytest.mark.parametrize(
    ("field", "value"),
    [("granule", {"ticks": -5, "bump_ticks": 0}), ("width_bits", 0), ("hz", -1.0), ("pairs", []), ("machine", None)],
)
def test_counters_that_cannot_be_are_damage(saved, field, value):
    model, path = saved
    with pytest.raises(InputError, match="damaged"):
        load_model(edited(path, **{field: value}), model.machine)


def test_no_damage_gets_through_or_crashes(saved):
    """Truncations and changed bytes, digits for digits too: a clear error, or (the last digit of a float) no change."""
    model, path = saved
    content = path.read_bytes()
    broken = [content[:n] for n in range(0, len(content) - 1, 11)]
    for n in range(0, len(content), 3):
        other = b"\xff" if n % 2 else b"7" if content[n : n + 1] != b"7" else b"8"
        if not content[n : n + 1].isspace():
            broken.append(content[:n] + other + content[n + 1 :])
    broken += [b"", b"null", b"[]", b"{}", b"\x00" * 100]
    for damaged in broken:
        path.write_bytes(damaged)
        try:
            assert load_model(path, model.machine) == model
        except InputError as error:
            assert re.search("damaged|not a clock model|has version", error.what)  # noqa: PT017


def test_a_missing_file_says_so(tmp_path, saved):
    with pytest.raises(InputError, match="No such file"):
        load_model(tmp_path / "none.json", saved[0].machine)


def test_saving_replaces_the_file_whole_or_not_at_all(saved, tmp_path):
    model, path = saved
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot write"):
        model.save(path / "below" / "a-file.json")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["clocks.json"]
