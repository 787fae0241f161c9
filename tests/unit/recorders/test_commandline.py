"""Compiler command lines, taken apart."""

import pytest

from recbulc.errors import InputError
from recbulc.recorders.commandline import Input, parse


def taken(*words: str, cxx: bool = False):
    return parse([*words], cxx=cxx)


def test_compile_one_source():
    line = taken("-O2", "-c", "-I", "inc", "-DX=1", "dir/a.c", "-o", "b.o")
    assert line.is_compile
    assert not line.is_alone
    assert line.output == "b.o"
    assert line.inputs == [Input("dir/a.c", "c")]
    assert line.compile_options() == ["-O2", "-I", "inc", "-DX=1"]
    assert line.codegen_options() == ["-O2"]


@pytest.mark.parametrize("words", [["-ob.o"], ["-o", "b.o"], ["-o", "a", "-ob.o"]])
def test_output_joined_or_apart(words):
    line = taken(*words, "a.c")
    assert line.output == "b.o"
    assert line.options == []


@pytest.mark.parametrize(
    ("path", "language", "as_cxx"),
    [
        ("a.c", "c", "c++"),
        ("a.i", "cpp-output", "c++-cpp-output"),
        ("a.cc", "c++", "c++"),
        ("a.C", "c++", "c++"),
        ("a.c++", "c++", "c++"),
        ("a.ii", "c++-cpp-output", "c++-cpp-output"),
        ("a.s", "assembler", "assembler"),
        ("a.S", "assembler-with-cpp", "assembler-with-cpp"),
        ("a.ll", "ir", "ir"),
        ("a.o", "", ""),
        ("lib.so.1", "", ""),
        ("a.c/b", "", ""),
        ("-", "", ""),
    ],
)
def test_languages(path, language, as_cxx):
    assert taken(path).inputs == [Input(path, language)]
    assert taken(path, cxx=True).inputs == [Input(path, as_cxx)]


def test_x_holds_until_the_next_one():
    line = taken("a.c", "-x", "c++", "b", "-xc", "c.o", "-x", "none", "d.o", "e.cpp")
    assert [item.language for item in line.inputs] == ["c", "c++", "c", "", "c++"]
    assert line.options == []


def test_link_keeps_the_order_of_everything():
    line = taken("a.o", "-L", "lib", "-lone", "b.c", "-Wl,-z,now", "-lm", "-o", "prog", "-pthread")
    assert line.items == [
        *(Input("a.o", ""), ("-L", "lib"), ("-lone",), Input("b.c", "c"), ("-Wl,-z,now",), ("-lm",), ("-pthread",)),
    ]
    assert line.compile_options() == ["-pthread"]


@pytest.mark.parametrize(
    "words",
    [
        *(["-E", "a.c"], ["-S", "a.c"], ["-M", "a.c"], ["-MM", "a.c"], ["-fsyntax-only", "a.c"], ["-###", "a.c"]),
        *(["--version"], ["-v"], ["-print-search-dirs"], ["--print-file-name=x"], ["-dumpmachine"], ["--help"]),
        *(["-x", "c-header", "a.h"], ["a.h"], ["-c", "a.c", "b.c", "-o", "c.o"], ["-c", "a.o"], ["-c"], []),
        *(["a.c", "-o"], ["a.c", "-I"], ["-x", "objective-c", "a.m"], ["-emit-llvm", "-c", "a.c"]),
    ],
)
def test_what_is_left_to_clang_alone(words):
    assert taken(*words).is_alone


@pytest.mark.parametrize("words", [["a.c"], ["a.o"], ["-c", "a.c", "b.c"], ["-v", "a.c"], ["-c", "a.s", "-o", "a.o"]])
def test_what_is_not(words):
    assert not taken(*words).is_alone


@pytest.mark.parametrize(
    "option", ["-I", "-D", "-include", "-isystem", "-MF", "-Xclang", "-target", "--param", "-mllvm", "-u"]
)
def test_values_are_no_inputs(option):
    line = taken(option, "value.c", "a.c")
    assert line.inputs == [Input("a.c", "c")]
    assert (option, "value.c") in line.options


def test_the_second_step_gets_what_makes_code():
    line = taken(
        *(
            "-O2",
            "-fPIC",
            "-march=native",
            "-m64",
            "-Wall",
            "-Werror",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-includex.h",
            "-MD",
        ),
        *(
            "-Xclang",
            "-disable-llvm-passes",
            "-Wa,--noexecstack",
            "-mllvm",
            "-x86-asm-syntax=att",
            "-pedantic",
            "a.c",
            "-c",
        ),
    )
    assert line.codegen_options() == [
        *("-O2", "-fPIC", "-march=native", "-m64", "-Wa,--noexecstack", "-mllvm", "-x86-asm-syntax=att"),
    ]
    assert "-Wa,--noexecstack" not in line.compile_options()
    assert {"-Wall", "-Werror", "-disable-llvm-passes"} <= {*line.compile_options()}


@pytest.mark.parametrize("option", ["-flto", "-flto=thin", "-fno-lto", "-ffat-lto-objects", "-gsplit-dwarf"])
def test_what_would_need_another_way_of_compiling_is_dropped(option):
    assert taken(option, "a.c").options == []


@pytest.mark.parametrize(
    ("words", "added"),
    [
        (["-c", "a.c"], []),
        (["-c", "-MD", "d/a.c"], ["-MF", "a.d", "-MQ", "a.o"]),
        (["-c", "-MMD", "a.c", "-o", "x/b.o"], ["-MF", "x/b.d", "-MQ", "x/b.o"]),
        (["-c", "-MD", "-MF", "q", "a.c"], ["-MQ", "a.o"]),
        (["-c", "-MD", "-MFq", "-MTt", "a.c"], []),
        (["-c", "-MD", "-MQ", "t", "a.c", "-o", "b"], ["-MF", "b.d"]),
        (["-MD", "a.c", "-o", "prog"], ["-MF", "prog.d", "-MQ", "prog"]),
        (["-c", "-Wp,-MD,q", "a.c"], ["-MQ", "a.o"]),
    ],
)
def test_dependencies_are_those_of_a_direct_compilation(words, added):
    line = taken(*words)
    assert line.dependency_options(line.inputs[0].path) == added


def test_the_level_is_ours():
    line = taken("--recbulc-level=RW,FUNC", "a.c")
    assert (line.level, line.options) == ("RW,FUNC", [])


def test_files_behind_two_dashes():
    line = taken("-o", "x", "--", "-odd.c", "b.c")
    assert line.inputs == [Input("./-odd.c", "c"), Input("b.c", "c")]
    assert (line.output, line.options) == ("x", [])


def test_response_files(tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text("-DNAME='a b' \"c d.c\"\n")
    outer.write_text(f"-O1 @{inner}\n-o prog\\ 1")
    line = taken(f"@{outer}", "@missing", "@")
    assert line.options == [("-O1",), ("-DNAME=a b",)]
    assert line.inputs == [Input("c d.c", "c"), Input("@missing", ""), Input("@", "")]
    assert line.output == "prog 1"
    assert line.arguments == [f"@{outer}", "@missing", "@"]


def test_damaged_response_files(tmp_path):
    (tmp_path / "open").write_text("-D'x\n")
    (tmp_path / "self").write_text(f"@{tmp_path / 'self'}")
    for name, why in (("open", "quot"), ("self", "names itself")):
        with pytest.raises(InputError, match=why):
            taken(f"@{tmp_path / name}")
