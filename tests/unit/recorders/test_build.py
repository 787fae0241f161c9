"""One call of the compiler after another: what they leave behind, what they say, how they exit."""

import os
import subprocess
import sys

import pytest
from elftools.elf.elffile import ELFFile

from recbulc.cli.main import main
from recbulc.errors import InputError, RecbulcError
from recbulc.recorders import build
from recbulc.recorders.instrument.site import OBJECTS_SECTION, SITES_SECTION

SOURCES = {
    "main.c": '#include "part.h"\nint main(void) { return part() - N; }\n',
    "part.h": "int part(void);\n#define N 7\n",
    "part.c": '#include "part.h"\nint shared = 3;\nint part(void) { return shared + 4; }\n',
    "wrong.c": "int x = ;\n",
    "asm.c": 'int main(void) { __asm__("no such instruction"); return 0; }\n',
    "add.s": '.globl add\nadd: lea (%rdi,%rsi), %eax\nret\n.section .note.GNU-stack,"",@progbits\n',
    "adds.c": "int add(int, int);\nint main(void) { return add(2, 3) - 5; }\n",
    "one.cpp": "int main() { try { throw 1; } catch (int n) { return n - 1; } }\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with small sources."""
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(build.LEVEL_ENVIRONMENT, raising=False)
    return tmp_path


def runs(program) -> int:
    return subprocess.run([program], check=False).returncode


def sections(path) -> set[str]:
    with path.open("rb") as file:
        return {section.name for section in ELFFile(file).iter_sections()}


def test_compile_and_link_apart_and_together(here, capfd):
    assert main(["cc", "-c", "-O1", "main.c", "part.c"]) == 0
    assert {OBJECTS_SECTION, SITES_SECTION, ".recbulc.meta"} <= sections(here / "part.o")
    assert main(["cc", "main.o", "part.o", "-o", "apart"]) == 0
    assert main(["cc", "-MD", "main.c", "part.o"]) == 0
    assert [runs(here / name) for name in ("apart", "a.out")] == [0, 0]
    assert (here / "main.d").read_text().split() == ["main.o:", "main.c", "part.h"]
    assert capfd.readouterr() == ("", "")
    assert not [name for name in os.listdir() if name.endswith((".ll", ".meta"))]  # noqa: PTH208


def test_cxx_takes_c_files_as_cxx(here, capfd):
    (here / "is.c").write_text("int main() { return __cplusplus ? [] { return 0; }() : 1; }\n")
    assert main(["c++", "is.c", "-o", "is"]) == runs(here / "is") == 0
    assert main(["c++", "one.cpp", "-o", "one"]) == runs(here / "one") == 0


def test_assembly_is_passed_through(here, capfd):
    assert main(["cc", "adds.c", "add.s", "-Wa,--noexecstack", "-Werror", "-o", "adds"]) == 0
    assert runs(here / "adds") == 0


def test_names_with_everything_in_them(here, capfd):
    folder = here / 'a "b" $c é\\'
    folder.mkdir()
    (folder / "x 'y'.c").write_text(SOURCES["part.c"].replace("part.h", "../part.h"))
    assert main(["cc", "-c", str(folder / "x 'y'.c"), "-o", str(folder / 'o"o .o')]) == 0
    assert main(["cc", "main.c", str(folder / 'o"o .o'), "-o", "prog"]) == runs(here / "prog") == 0


def test_clang_alone(here, capfd):
    assert main(["cc", "--version"]) == 0
    assert "clang version" in capfd.readouterr().out
    assert main(["cc", "-E", "-P", "main.c"]) == 0
    assert "return part() - 7" in capfd.readouterr().out
    assert main(["cc", "--recbulc-level=RW", "-v"]) == 0
    assert "clang version" in capfd.readouterr().err


def test_source_from_a_pipe(here):
    command = [sys.executable, "-c", "from recbulc.cli.main import main; raise SystemExit(main())", "cc", "-xc", "-"]
    assert subprocess.run([*command, "-o", "piped"], input=b"int main(void){return 5;}", check=False).returncode == 0
    assert runs(here / "piped") == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-c", "missing.c"], "missing.c"),
        (["missing.o", "part.c"], "missing.o"),
        (["-c", "wrong.c"], "expected expression"),
        (["main.c"], "part"),  # undefined
        (["-c", "part.c", "-o"], "argument to '-o' is missing"),
        (["-c", "part.c", "-o", "no/such/part.o"], "no/such/part.o"),
        (["-c", "asm.c"], "no such instruction"),
        (["-c", "part.c", "main.c", "-o", "x.o"], "cannot specify -o"),
        (["-c", "part.c", "-fno-such-option"], "no-such-option"),
    ],
)
def test_clangs_errors_are_clangs(here, capfd, arguments, says):
    assert main(["cc", *arguments]) == 1
    told = capfd.readouterr().err
    assert says in told
    assert "recbulc:" not in told
    assert "Traceback" not in told


def test_usage(here, capfd):
    assert main(["cc"]) == 2
    assert "usage: recbulc cc" in capfd.readouterr().out


@pytest.mark.parametrize("how", ["option", "environment"])
def test_levels(here, capfd, monkeypatch, how):
    def call(level: str) -> int:
        if how == "environment":
            monkeypatch.setenv(build.LEVEL_ENVIRONMENT, level)
            return main(["cc", "-c", "part.c"])
        return main(["cc", "-c", f"--recbulc-level={level}", "part.c"])

    assert call("RW,FUNC") == 0
    assert call("PATH") == 2
    assert "nothing is built in for the level PATH" in capfd.readouterr().err


def test_a_cache_that_cannot_be_written(here, capfd, monkeypatch):
    (here / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "file"))
    assert main(["cc", "main.c", "part.c"]) == 2
    assert "XDG_CACHE_HOME" in capfd.readouterr().err


def test_our_own_mistakes_are_one_sentence(here, capfd, monkeypatch):
    def broken(*_):
        raise ValueError("no type at 3")

    monkeypatch.setattr(build, "instrument", broken)
    with pytest.raises(RecbulcError, match="IR that recbulc cannot read: no type at 3"):
        build.run_compiler(["-c", "part.c"], cxx=False)


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ([], ["-g"]),
        (["-g"], []),
        (["-g2", "-g0"], ["-g"]),
        (["-ggdb0"], ["-g"]),
        (["-g1", "-gcc-toolchain"], []),
        (["-gz"], ["-g"]),
        (["-gdwarf-4"], []),
        (["-gno-column-info"], ["-g"]),
    ],
)
def test_sites_always_have_lines(options, added):
    assert build._debug(options) == added


def test_damaged_response_files_exit_with_2(here, capfd):
    (here / "rsp").write_text("'")
    with pytest.raises(InputError):
        build.run_compiler(["@rsp"], cxx=False)
    assert main(["cc", "@rsp"]) == 2
