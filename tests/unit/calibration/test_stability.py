import pytest

from recbulc.calibration.figures import save_figure, stability_figure
from recbulc.calibration.stability import Header, Sample, StabilityFile, read_stability, variances, watch
from recbulc.errors import InputError
from recbulc.tsc_probe.machine import Identity
from recbulc.tsc_probe.simulated import SimulatedClock, SimulatedProber

PAIR = (0, 1)
HERE = Identity("cpu", "1", "none", "boot", 2)


def header(**changes):
    values = {"machine": HERE, "confidence": 0.99, "granule_ticks": 1, "width_bits": 64, "injected": False}
    return Header(**(values | changes), started=1_000.0)


class FakeTime:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.t = 1_000.0

    def now(self):
        return self.t

    def sleep(self, seconds):
        self.t += seconds


def measure(file, windows, skew=20.0, seed=0):
    clock = FakeTime()
    prober = SimulatedProber({0: SimulatedClock(), 1: SimulatedClock(skew)}, now=1e6, seed=seed)
    return list(watch(prober, {PAIR: ()}, file, seconds=windows, every=1.0, now=clock.now, sleep=clock.sleep))


def test_windows_and_their_accumulation(tmp_path):
    file = StabilityFile(tmp_path / "s.csv", header())
    samples = measure(file, 4)
    assert [sample.t for sample in samples] == [1.0, 2.0, 3.0, 4.0]
    for number, sample in enumerate(samples, 1):
        assert sample.lo < sample.d < sample.hi
        assert sample.d == pytest.approx(20, abs=1)
        assert sample.acc_d == pytest.approx(sum(s.d for s in samples[:number]) / number, abs=1e-6)
    assert read_stability(tmp_path / "s.csv")[1] == samples


def test_a_file_is_continued_where_it_ended(tmp_path):
    path = tmp_path / "s.csv"
    first = measure(StabilityFile(path, header()), 2, skew=10.0)
    again = StabilityFile(path, header())
    second = measure(again, 2, skew=30.0, seed=1)
    assert read_stability(path)[1] == first + second
    assert second[-1].acc_d == pytest.approx(20, abs=1)


def test_half_a_line_of_a_killed_run_is_passed_over(tmp_path):
    path = tmp_path / "s.csv"
    first = measure(StabilityFile(path, header()), 2)
    with path.open("a") as file:
        file.write("3.0,0,1,19.")
    assert read_stability(path)[1] == first
    second = measure(StabilityFile(path, header()), 1, seed=1)
    assert read_stability(path)[1] == first + second


def test_a_file_of_elsewhere_is_not_continued(tmp_path):
    path = tmp_path / "s.csv"
    measure(StabilityFile(path, header()), 1)
    before = path.read_bytes()
    with pytest.raises(InputError, match="its machine is"):
        StabilityFile(path, header(machine=Identity("cpu", "1", "none", "another boot", 2)))
    with pytest.raises(InputError, match="its confidence is"):
        StabilityFile(path, header(confidence=0.9))
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["", "t,x\n1,2\n", "# {}\nt\n1\n", "\x00\x01"])
def test_damaged_files_are_refused(tmp_path, content):
    path = tmp_path / "s.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="not a stability file"):
        read_stability(path)


def test_an_interruption_keeps_every_finished_window(tmp_path):
    file = StabilityFile(tmp_path / "s.csv", header())
    clock = FakeTime()

    def interrupt(seconds):
        clock.sleep(seconds)
        if clock.t > 1_002.5:
            raise KeyboardInterrupt

    prober = SimulatedProber({0: SimulatedClock(), 1: SimulatedClock(5.0)}, now=1e6)
    with pytest.raises(KeyboardInterrupt):
        for _ in watch(prober, {PAIR: ()}, file, seconds=9, every=1.0, now=clock.now, sleep=interrupt):
            pass
    assert [sample.t for sample in read_stability(tmp_path / "s.csv")[1]] == [1.0, 2.0]


def test_variance_is_per_pair():
    samples = [Sample(float(t), 0, y, d, d, d, d, 1, 0, 0.0) for t, (y, d) in enumerate([(1, 1.0), (1, 3.0), (2, 5.0)])]
    assert variances(samples) == {(0, 1): 2.0, (0, 2): 0.0}


def test_the_picture_has_a_panel_per_pair(tmp_path):
    samples = [Sample(float(t), 0, y, t % 3, t % 3 - 1, t % 3 + 1, 1.0, 1, 0, 0.0) for t in range(20) for y in (1, 2)]
    figure = stability_figure(samples, 26)
    assert len(figure.axes) == 2
    save_figure(figure, tmp_path / "s.svg")
    assert (tmp_path / "s.svg").stat().st_size > 1_000
