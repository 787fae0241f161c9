import pytest
from tests.support import QUICK, fake_root

from recbulc.calibration.calibrate import calibrate
from recbulc.tsc_probe.machine import read_machine
from recbulc.tsc_probe.simulated import Counters, SimulatedClock, SimulatedProber


@pytest.fixture
def simulate(tmp_path_factory):
    """Calibrate a made-up machine: its cores' offsets, and whatever else it is to be like."""

    def run(offsets, *, drifts=None, packages=None, guest=False, granule=1, **how):
        cores = tuple(range(len(offsets)))
        flags = "tsc rdtscp constant_tsc nonstop_tsc" + (" hypervisor" if guest else "")
        root = fake_root(
            tmp_path_factory.mktemp("root"), flags=flags, online=f"0-{len(offsets) - 1}", packages=packages
        )
        prober = SimulatedProber(
            {core: SimulatedClock(float(offsets[core]), (drifts or [0.0] * len(offsets))[core]) for core in cores},
            Counters(granule, bumps=granule > 1),
            package_of=packages or {},
            now=1e6,
            **how,
        )
        return calibrate(read_machine(root), prober, cores, effort=QUICK)

    return run
