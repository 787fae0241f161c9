"""Which clang is found: $RECBULC_CLANG, clang-N, clang, the wheel's."""

import importlib.util

import pytest

from recbulc.errors import InputError, MachineError
from recbulc.recorders.compiler import ENVIRONMENT, find_compiler


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes programs that say their version, alone on the PATH; no wheel."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def make(name: str, says: str = "Debian clang version 16.0.6 (15~deb12u1)", *, shebang: str = "#!/bin/sh\n"):
        path = tmp_path / name
        path.write_text(f"{shebang}echo '{says}'\n")
        path.chmod(0o755)
        return path

    return make


def test_the_environment_comes_first(programs, monkeypatch):
    programs("clang-19")
    chosen = programs("mine", "clang version 17.0.1")
    for value in (str(chosen), "mine"):
        monkeypatch.setenv(ENVIRONMENT, value)
        found = find_compiler()
        assert (found.command, found.name) == ((str(chosen),), "clang 17")


@pytest.mark.parametrize(
    ("says", "shebang"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0", "#!/bin/sh\n"),
        ("clang version 15.0.7", "#!/bin/sh\n"),
        ("", "#!/bin/false\n"),
        ("clang version 19.0.0", "\0\0"),  # not for this machine
        ("clang version 19.0.0", "#!/no/such/interpreter\n"),
    ],
)
def test_what_the_environment_names_must_do(programs, monkeypatch, says, shebang):
    programs("clang-19")
    monkeypatch.setenv(ENVIRONMENT, str(programs("mine", says, shebang=shebang)))
    with pytest.raises(InputError, match="no clang of version 16 or newer") as caught:
        find_compiler()
    assert caught.value.exit_code == 2


def test_it_must_be_there(programs, monkeypatch, tmp_path):
    for value in ("missing", str(tmp_path), "/dev/null"):
        monkeypatch.setenv(ENVIRONMENT, value)
        with pytest.raises(InputError, match="which is no program"):
            find_compiler()


def test_the_newest_numbered_one_then_the_plain_one(programs):
    programs("clang", "clang version 22.0.0")
    assert find_compiler().name == "clang 22"
    programs("clang-15")
    assert find_compiler().name == "clang 22"
    programs("clang-16")
    newest = programs("clang-19")
    found = find_compiler()
    assert (found.name, found.command) == ("clang 19", (str(newest),))
    assert found.driver(cxx=False) == [str(newest)]
    assert found.driver(cxx=True) == [str(newest), "--driver-mode=g++"]


def test_an_old_clang_makes_way_for_the_wheel(programs, monkeypatch, tmp_path):
    programs("clang", "Ubuntu clang version 14.0.0")
    spec = importlib.util.spec_from_loader("ziglang", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "ziglang")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    found = find_compiler()
    assert found.name == "clang of ziglang"
    assert found.command[:2] == (str(tmp_path / "ziglang/zig"), "clang")
    assert found.system == (str(tmp_path / "ziglang/lib"),)


def test_a_machine_without_any(programs):
    programs("clang", "clang version 9.0.0")
    with pytest.raises(MachineError, match="no clang of version 16") as caught:
        find_compiler()
    assert caught.value.exit_code == 3
    assert "ziglang" in caught.value.remedy
