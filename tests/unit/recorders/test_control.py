"""The control page: the same in C and NumPy, and never another run's."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.runtime_support import INCLUDE

from recbulc.errors import InputError
from recbulc.recorders import control
from recbulc.recorders.control import (
    CONTROL,
    DIVERGENCE,
    THREAD,
    ControlPage,
    Knobs,
    Level,
    Mode,
    Setting,
    ThreadState,
    thread_names,
)

STRUCTS = {"rb_control": CONTROL, "rb_control_thread": THREAD, "rb_divergence": DIVERGENCE}
ENUMS = {"RB_MODE": Mode, "RB_LEVEL": Level, "RB_THREAD": ThreadState}


def fields(dtype: np.dtype) -> list[str]:
    return [name for name in dtype.names if name != "unused"]


@pytest.fixture(scope="module")
def c_facts(tmp_path_factory) -> dict[str, str]:
    """What the compiler makes of rb_control.h."""
    lines = [
        f'printf("{struct}.{name} %zu+%zu\\n", offsetof(struct {struct}, {name}), '
        f"sizeof(((struct {struct} *)0)->{name}));"
        for struct, dtype in STRUCTS.items()
        for name in fields(dtype)
    ]
    lines += [f'printf("{struct} %zu\\n", sizeof(struct {struct}));' for struct in STRUCTS]
    lines += [
        f'printf("{prefix}_{member} %d\\n", {prefix}_{member});'
        for prefix, enum in ENUMS.items()
        for member in enum.__members__
    ]
    lines += ['printf("env " RB_CONTROL_ENV "\\n"); printf("magic %llx\\n", (unsigned long long)RB_CONTROL_MAGIC);']
    lines += ['printf("most %d %d %d\\n", RB_CONTROL_THREADS, RB_CONTROL_CORES, RB_CONTROL_PATH);']
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "layout.c"
    includes = '#include <stddef.h>\n#include <stdio.h>\n#include "rb_control.h"\n'
    source.write_text(f"{includes}int main(void) {{\n" + "\n".join(lines) + "\nreturn 0; }\n")
    subprocess.run(["cc", *INCLUDE, str(source), "-o", str(folder / "layout")], check=True)
    printed = subprocess.check_output([folder / "layout"], text=True)
    return dict(line.split(" ", 1) for line in printed.splitlines())


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_lies_where_c_puts_it(c_facts, struct):
    dtype = STRUCTS[struct]
    assert int(c_facts[struct]) == dtype.itemsize
    for name in fields(dtype):
        kind, offset = dtype.fields[name][:2]
        assert c_facts[f"{struct}.{name}"] == f"{offset}+{kind.itemsize}", name


def test_no_field_is_missing_in_either():
    header = (Path(control.__file__).parent / "csrc/rb_control.h").read_text()
    for struct, dtype in STRUCTS.items():
        body = header.split(f"struct {struct} {{")[1].split("\n};")[0]
        declared = [
            line.split(";")[0].split("[")[0].split()[-1] for line in body.splitlines() if ";" in line.split("/*")[0]
        ]
        assert declared == fields(dtype)


def test_every_number_is_that_of_c(c_facts):
    for prefix, enum in ENUMS.items():
        assert {name: int(c_facts[f"{prefix}_{name}"]) for name in enum.__members__} == dict(enum.__members__)
    assert c_facts["env"] == control.ENVIRONMENT
    assert int(c_facts["magic"], 16) == control.MAGIC
    assert c_facts["most"] == f"{control.MOST_THREADS} {control.MOST_CORES} {control.PATH_BYTES}"


def test_a_page_says_what_it_was_told(tmp_path):
    knobs = Knobs(seed=1 << 62, access_delay_ppm=7, sync_delay_ppm=8, delay_us=9, start_us=10)
    setting = Setting(Mode.RECORD, Level.FUNC, "card", (3, 1), pin=False, knobs=knobs, directory=tmp_path)
    ControlPage.create(tmp_path / "control", setting)
    page = np.fromfile(tmp_path / "control", dtype=CONTROL)[0]
    assert (page["mode"], page["level"], page["stamp"], page["pin"]) == (Mode.RECORD, Level.FUNC, 5, 0)
    assert page["cores"][: page["ncores"]].tolist() == [3, 1]
    assert (page["seed"], page["access_delay_ppm"], page["sync_delay_ppm"]) == (1 << 62, 7, 8)
    assert (page["delay_us"], page["start_us"]) == (9, 10)
    assert page["dir"] == str(tmp_path).encode()
    assert page["schedule"] == b""


def test_a_new_page_is_a_new_file(tmp_path):
    """What an earlier run left behind writes into its own page for ever."""
    setting = Setting(Mode.RECORD, cores=(0,))
    old = ControlPage.create(tmp_path / "control", setting)
    old._page["nthreads"] = 5
    assert len(ControlPage.create(tmp_path / "control", setting).threads()) == 0
    assert len(old.threads()) == 5
    assert len(ControlPage.open(tmp_path / "control").threads()) == 0


@pytest.mark.parametrize("content", [b"", b"short", bytes(CONTROL.itemsize)])
def test_what_is_no_page_is_refused(tmp_path, content):
    (tmp_path / "control").write_bytes(content)
    with pytest.raises(InputError, match="control page"):
        ControlPage.open(tmp_path / "control")


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(InputError, match="longer than"):
        ControlPage.create(tmp_path / "control", Setting(Mode.RECORD, cores=(0,), directory=tmp_path / ("x" * 1100)))
    with pytest.raises(InputError, match="0 cores"):
        ControlPage.create(tmp_path / "control", Setting(Mode.RECORD))


def test_threads_are_named_by_creation():
    assert thread_names([0, 0, 0, 1, 3], [0, 1, 2, 1, 4]) == ["0", "0.1", "0.2", "0.1.1", "0.1.1.4"]
    assert thread_names([], []) == []
