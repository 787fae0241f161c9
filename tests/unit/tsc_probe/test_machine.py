import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import fake_root

from recbulc.errors import InputError, MachineError
from recbulc.tsc_probe.machine import Machine, ranges, read_machine

ALL = tuple(sorted(os.sched_getaffinity(0)))


def machine(tmp_path: Path, **how) -> Machine:
    return read_machine(fake_root(tmp_path, **how))


def test_reads_what_linux_says(tmp_path):
    found = machine(tmp_path, online="0-3,8", packages={0: 0, 1: 0, 2: 1, 3: 1, 8: 0})
    assert found.online == (0, 1, 2, 3, 8)
    assert found.package_of[2] == 1
    assert found.identity.boot_id == "made-up"
    assert found.invariant
    assert found.is_guest


def test_variant_counters_are_refused_and_constant_ones_are_not_invariant(tmp_path):
    with pytest.raises(MachineError, match="constant rate"):
        machine(tmp_path / "a", flags="tsc rdtscp nonstop_tsc").require_clock()
    with pytest.raises(MachineError, match="RDTSCP"):
        machine(tmp_path / "b", flags="tsc constant_tsc").require_clock()
    constant = machine(tmp_path / "c", flags="tsc rdtscp constant_tsc")
    constant.require_clock()
    assert not constant.invariant


def test_cores_that_cannot_be_used_are_named(tmp_path):
    found = machine(tmp_path, online=f"{ALL[0]}-{ALL[-1] + 2}")
    with pytest.raises(MachineError, match=f"core {ALL[-1] + 9} is off-line"):
        found.choose_cores((ALL[0], ALL[-1] + 9))
    with pytest.raises(MachineError, match=f"core {ALL[-1] + 1} is not in this process's affinity mask"):
        found.choose_cores((ALL[0], ALL[-1] + 1))
    with pytest.raises(MachineError, match="a skew needs two"):
        found.choose_cores((ALL[0],))
    with pytest.raises(InputError, match="twice"):
        found.choose_cores((ALL[0], ALL[0]))


def test_the_trigger_comes_from_the_processors_of_the_pair(tmp_path):
    found = machine(tmp_path, online="0-5", packages={0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2})
    cores = (0, 1, 2, 3, 4, 5)
    assert found.trigger_groups((0, 1), cores) == ((2,),)
    assert found.trigger_groups((0, 3), cores) == ((1, 2), (4,))
    assert found.trigger_groups((3, 4), cores) == ()
    assert found.trigger_groups((0, 5), cores) == ()


def test_without_sys_the_affinity_mask_is_believed(tmp_path):
    assert read_machine(tmp_path).online == ALL


def test_a_kernel_that_gave_up_the_tsc_is_noticed(tmp_path):
    found = machine(tmp_path)
    assert not replace(found, clocksource="hpet").kernel_trusts_tsc
    for good in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page"):
        assert replace(found, clocksource=good).kernel_trusts_tsc


def test_core_ranges_read_as_linux_writes_them():
    assert ranges((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert ranges(()) == "none"
