"""The rewriter: which sites a module gets, where they stand, and that clang takes the result."""

import re
import subprocess

import pytest

from recbulc.recorders.compiler import find_compiler
from recbulc.recorders.instrument.rewrite import Instrumented, instrument
from recbulc.recorders.instrument.site import ATOMIC, SiteKind

TRIPLE = 'target triple = "x86_64-unknown-linux-gnu"\n'
GLOBALS = """
%node = type { i64, ptr }
@g = global i32 0
@p = global ptr null
@tls = thread_local global i32 0
@fixed = constant i32 7
@.str = private constant [4 x i8] c"abc\\00"
declare void @use(ptr)
declare i64 @strlen(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.threadlocal.address.p0(ptr)
declare i32 @__gxx_personality_v0(...)
"""
_SITE = re.compile(
    r'call void asm sideeffect "771:[^"]*?\.long 771b-\.,\.Lrb_object-\.,(\d+)\\0A\.byte (\d+),(\d+),(\d+)'
)


def rewritten(body: str, name: str = "f", parameters: str = "ptr %a, i32 %v") -> Instrumented:
    """One function, in a module with some globals."""
    return instrument(f"{TRIPLE}{GLOBALS}\ndefine void @{name}({parameters}) {{\n{body}\n}}\n")


def shape(instrumented: Instrumented) -> list[str]:
    """The function with each site as its kind and number, and without what is around it."""
    lines = instrumented.lines
    start = next(n for n, line in enumerate(lines) if line.startswith("define"))
    end = lines.index("}", start)
    out = []
    for line in "\n".join(lines[start + 1 : end]).split("\n"):
        site = _SITE.search(line)
        if site:
            out.append(f"{SiteKind(int(site[2])).name} {site[1]}")
        elif line.strip():
            out.append(line.strip())
    return out


def accepted(instrumented: Instrumented, folder, *options: str) -> None:
    """Clang makes an object of it."""
    (folder / "meta").write_bytes(b"")
    (folder / "in.ll").write_text(instrumented.finish(bytes(12), str(folder / "meta")))
    command = [*find_compiler().driver(cxx=False), *options, "-w", "-Xclang", "-disable-llvm-passes", "-c"]
    done = subprocess.run(
        [*command, "-o", folder / "out.o", "-x", "ir", folder / "in.ll"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_accesses_stand_between_their_sites_and_are_volatile():
    found = rewritten("  %1 = load i32, ptr %a, align 4\n  store i32 %v, ptr @g, align 4\n  ret void")
    assert shape(found) == [
        "FUNC_ENTRY 0",
        "BEFORE_READ 1",
        "%1 = load volatile i32, ptr %a, align 4",
        "%rb.1 = zext i32 %1 to i64",
        "AFTER_READ 1",
        "BEFORE_WRITE 2",
        "store volatile i32 %v, ptr @g, align 4",
        "%rb.2 = zext i32 %v to i64",
        "AFTER_WRITE 2",
        "FUNC_EXIT 3",
        "ret void",
    ]
    assert [site.number for site in found.sites] == [0, 1, 2, 3]
    assert [(site.kind.name, site.size, site.flags) for site in found.sites] == [
        ("FUNC_ENTRY", 0, 0),
        ("BEFORE_READ", 4, 0),
        ("BEFORE_WRITE", 4, 0),
        ("FUNC_EXIT", 0, 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "%1 = load volatile i16, ptr %a",
        "%1 = load atomic volatile i32, ptr %a acquire, align 4",
        "store volatile double 1.0, ptr %a",
    ],
)
def test_what_is_volatile_stays_as_it_is(text):
    assert f"{text}" in shape(rewritten(f"  {text}\n  ret void"))


@pytest.mark.parametrize(
    ("text", "volatile"),
    [
        ("%load = load i32, ptr %a", "%load = load volatile i32, ptr %a"),
        (
            "%load = load atomic i8, ptr %a monotonic, align 1",
            "%load = load atomic volatile i8, ptr %a monotonic, align 1",
        ),
        ("store i32 undef, ptr %a", "store volatile i32 zeroinitializer, ptr %a"),
        ("store atomic ptr null, ptr %a release, align 8", "store atomic volatile ptr null, ptr %a release, align 8"),
    ],
)
def test_volatile_goes_behind_the_opcode(text, volatile):
    found = rewritten(f"  {text}\n  ret void")
    assert volatile in shape(found)
    assert found.sites[1].flags == (ATOMIC if "atomic" in text else 0)


@pytest.mark.parametrize(
    ("kind", "value", "operand"),
    [
        ("i8", "-1", "255"),
        ("i64", "-1", "18446744073709551615"),
        ("ptr", "null", "0"),
        ("<2 x i32>", "zeroinitializer", "0"),
    ],
)
def test_known_values_are_part_of_the_site(kind, value, operand):
    text = "\n".join(rewritten(f"  store {kind} {value}, ptr %a\n  ret void").lines)
    assert f"$${operand},%rdi" in text


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("i24", [2, 1]),
        ("i128", [8, 8]),
        ("x86_fp80", [8, 2]),
        ("<4 x float>", [8, 8]),
        ("<3 x i32>", [8, 4]),
        ("{ ptr, i32 }", [8, 8]),
        ("[7 x i8]", [4, 2, 1]),
        ("<8 x double>", [8] * 8),
        ("%node", [8, 8]),
        ("i1", [1]),
    ],
)
@pytest.mark.parametrize("opcode", ["load", "store"])
def test_wide_accesses_fall_into_pieces(opcode, kind, pieces):
    text = f"%1 = load {kind}, ptr %a" if opcode == "load" else f"store {kind} zeroinitializer, ptr %a"
    found = rewritten(f"  {text}\n  ret void")
    wanted = SiteKind.BEFORE_READ if opcode == "load" else SiteKind.BEFORE_WRITE
    assert [site.size for site in found.sites if site.kind == wanted] == pieces
    assert [
        line for line in shape(found) if "%a" in line and "volatile" not in line and "getelementptr" not in line
    ] == []
    assert {site.ordinal for site in found.sites if site.kind == wanted} == {*range(len(pieces))}


def test_a_struct_assignment_reads_all_pieces_then_writes_them():
    body = "  call void @llvm.memcpy.p0.p0.i64(ptr align 8 @g, ptr noundef %a, i64 13, i1 false)\n  ret void"
    kinds = [line for line in shape(rewritten(body)) if line.isupper() or line[-1].isdigit()]
    sites = [line for line in kinds if line.startswith(("BEFORE", "AFTER"))]
    assert sites == [
        *("BEFORE_READ 1", "AFTER_READ 1", "BEFORE_WRITE 2", "AFTER_WRITE 2")[:2],
        *("BEFORE_READ 3", "AFTER_READ 3", "BEFORE_READ 5", "AFTER_READ 5"),
        *("BEFORE_WRITE 2", "AFTER_WRITE 2", "BEFORE_WRITE 4", "AFTER_WRITE 4", "BEFORE_WRITE 6", "AFTER_WRITE 6"),
    ]
    assert [site.size for site in rewritten(body).sites[1:-1]] == [8, 8, 4, 4, 1, 1]


def test_a_copy_of_nothing_vanishes_and_memset_repeats_its_byte():
    nothing = "  call void @llvm.memmove.p0.p0.i64(ptr @g, ptr %a, i64 0, i1 false)\n  ret void"
    assert shape(rewritten(nothing)) == ["FUNC_ENTRY 0", "FUNC_EXIT 1", "ret void"]
    set_known = "  call void @llvm.memset.p0.i64(ptr %a, i8 -2, i64 10, i1 false)\n  ret void"
    lines = shape(rewritten(set_known))
    assert f"store volatile i64 {0xFEFEFEFEFEFEFEFE}, ptr %a, align 1" in lines
    assert f"store volatile i16 {0xFEFE}, ptr %rb.1, align 1" in lines


def test_long_copies_and_string_functions_go_to_our_own():
    body = (
        "  call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %a, i64 65, i1 false), !dbg !1\n"
        "  %n = tail call i64 @strlen(ptr noundef %a)\n"
        "  call void @llvm.memset.p0.i64(ptr %a, i8 %b, i64 %n, i1 false)\n"
        "  ret void"
    )
    found = rewritten(body, parameters="ptr %a, i8 %b")
    text = "\n".join(found.lines)
    assert "call ptr @__rb_memcpy(ptr @g, ptr %a, i64 65)" in text
    assert "%n = tail call i64 @__rb_strlen(ptr noundef %a)" in text
    assert "call ptr @__rb_memset(ptr %a, i32 %rb." in text
    assert text.count("declare hidden") == 3
    assert [site.kind.name for site in found.sites].count("CALL") == 3


def test_a_program_with_its_own_strlen_keeps_it():
    text = (
        f"{TRIPLE}define i64 @strlen(ptr %0) {{\n  ret i64 1\n}}\n"
        "define i64 @f() {\n  %1 = call i64 @strlen(ptr null)\n  ret i64 %1\n}\n"
    )
    assert "__rb_" not in "\n".join(instrument(text).lines)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("atomicrmw xchg ptr %a, i32 %v seq_cst", "%v"),
        ("atomicrmw add ptr %a, i32 %v monotonic", "add i32 %1, %v"),
        ("atomicrmw nand ptr %a, i32 %v seq_cst", "xor i32 %rb.1, -1"),
        ("atomicrmw max ptr %a, i32 %v seq_cst", "icmp sgt i32 %1, %v"),
        ("atomicrmw umin ptr %a, i32 %v seq_cst", "icmp ult i32 %1, %v"),
        ("atomicrmw fadd ptr %a, float 1.0 seq_cst", "fadd float %1, 1.0"),
        ("atomicrmw uinc_wrap ptr %a, i32 %v seq_cst", "icmp uge i32 %1, %v"),
        ("atomicrmw udec_wrap ptr %a, i32 %v seq_cst", "icmp ugt i32 %1, %v"),
        ("cmpxchg ptr %a, i32 1, i32 %v acq_rel monotonic", "select i1 %rb.2, i32 %v, i32 %rb.1"),
        ("cmpxchg weak volatile ptr %a, ptr null, ptr @g seq_cst seq_cst", "select i1 %rb.2, ptr @g, ptr %rb.1"),
    ],
)
def test_atomics_have_one_site_pair_with_both_values(text, new, tmp_path):
    found = rewritten(f"  %1 = {text}\n  ret void")
    lines = shape(found)
    assert lines[1:3] == ["BEFORE_RMW 1", f"%1 = {text}"]  # as it was: atomics are not merged
    assert lines[-3:] == ["AFTER_RMW 1", "FUNC_EXIT 2", "ret void"]
    assert found.sites[1].flags == ATOMIC
    assert any(new in line for line in (*lines, text))


def test_an_unknown_operation_is_an_error_and_none_is_guessed():
    with pytest.raises(ValueError, match="fancy"):
        rewritten("  %1 = atomicrmw fancy ptr %a, i32 %v seq_cst\n  ret void")


@pytest.mark.parametrize(
    ("call", "last"),
    [
        ("tail call void @use(ptr %a)", ["FUNC_EXIT 2", "CALL 1", "tail call void @use(ptr %a)", "ret void"]),
        ("musttail call void @use(ptr %a)", ["FUNC_EXIT 2", "CALL 1", "musttail call void @use(ptr %a)", "ret void"]),
        ("call void @use(ptr %a)", ["CALL 1", "call void @use(ptr %a)", "FUNC_EXIT 2", "ret void"]),
        ("notail call void @use(ptr %a)", ["CALL 1", "notail call void @use(ptr %a)", "FUNC_EXIT 2", "ret void"]),
    ],
)
def test_a_function_is_left_before_its_tail_call(call, last):
    lines = shape(rewritten(f"  {call}\n  ret void"))
    assert lines[1:] == last


def test_functions_have_no_red_zone():
    text = (
        "define dso_local void @a() local_unnamed_addr #0 {\n  ret void\n}\n"
        "define void @b() #1 {\n  ret void\n}\n"
        "define void @c() {\n  ret void\n}\n"
        'attributes #0 = { nounwind "x"="y" }\nattributes #1 = { noredzone nounwind }\n'
    )
    headers = [line for line in instrument(TRIPLE + text).lines if line.startswith("define")]
    assert headers == [
        "define dso_local void @a() local_unnamed_addr noredzone #0 {",
        "define void @b() #1 {",
        "define void @c() noredzone {",
    ]


def test_bodies_that_are_not_emitted_and_naked_ones_get_nothing():
    text = (
        "define available_externally void @a() {\n  ret void\n}\n"
        "define void @b() naked {\n  unreachable\n}\n"
        "define void @c() #0 {\n  unreachable\n}\n"
        "attributes #0 = { naked }\n"
    )
    found = instrument(TRIPLE + text)
    assert found.sites == []
    assert "\n".join(found.lines) == TRIPLE + text


def test_sites_are_numbered_in_the_order_of_the_text_and_carry_places():
    text = (
        f"{TRIPLE}@g = global i32 0\n"
        "define void @f() !dbg !4 {\n"
        "  %1 = load i32, ptr @g, align 4, !dbg !5\n"
        "  %2 = load i32, ptr @g, align 4, !dbg !5\n"
        "  store i32 %2, ptr @g, align 4, !dbg !6\n"
        "  ret void, !dbg !7\n}\n"
        '!1 = !DIFile(filename: "a.c", directory: "/d")\n!2 = !DIFile(filename: "/usr/include/x.h", directory: "")\n'
        '!3 = distinct !DISubprogram(name: "inlined", file: !2, line: 9)\n'
        '!4 = distinct !DISubprogram(name: "f", file: !1, line: 1)\n'
        "!5 = !DILocation(line: 2, column: 7, scope: !4)\n"
        "!6 = !DILocation(line: 90, column: 1, scope: !3, inlinedAt: !5)\n"
        "!7 = !DILocation(line: 0, scope: !4)\n"
    )
    entry, first, second, inlined, leave = instrument(text).sites
    assert (entry.function, entry.file, entry.line) == ("f", "/d/a.c", 1)
    assert (first.line, first.column, first.ordinal, second.ordinal) == (2, 7, 0, 1)
    assert (inlined.file, inlined.line, inlined.is_system) == ("/d/a.c", 2, False)  # the user's own frame
    assert (leave.line, leave.file) == (2, "/d/a.c")  # its own is 0
    assert first.ir_line == text.split("\n").index("  %1 = load i32, ptr @g, align 4, !dbg !5")


def test_clang_takes_all_of_it(tmp_path):
    """Every construct in one module, names that need quotes included, at both ends of optimisation."""
    signed = ("xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min")
    operations = (*signed, "umax", "umin", "uinc_wrap", "udec_wrap")
    float_operations = ("fadd", "fsub", "fmax", "fmin")
    body = [f"  %x{n} = atomicrmw {name} ptr %a, i16 3 seq_cst" for n, name in enumerate(operations)]
    body += [f"  %y{n} = atomicrmw {name} ptr %a, double %d seq_cst" for n, name in enumerate(float_operations)]
    for n, kind in enumerate(
        ["i1", "i24", "half", "float", "<2 x half>", "x86_fp80", "{ ptr, i32 }", "[5 x i8]", "%node"]
    ):
        body += [f"  %l{n} = load {kind}, ptr %a", f"  store {kind} %l{n}, ptr @g", f"  store {kind} undef, ptr @p"]
    body += [
        "  %c = cmpxchg weak ptr @p, ptr null, ptr %a seq_cst monotonic",
        "  %array = alloca [9 x i64], align 32",
        "  call void @use(ptr %array)",
        "  %at = getelementptr i64, ptr %array, i64 3",
        "  store i64 4, ptr %at",
        "  %t = call ptr @llvm.threadlocal.address.p0(ptr @tls)",
        "  store i32 1, ptr %t",
        "  store i32 1, ptr @tls",
        "  %far = load i64, ptr inttoptr (i64 4096 to ptr)",
        "  call void @llvm.memset.p0.i64(ptr %array, i8 %b, i64 15, i1 false)",
        "  call void @llvm.memmove.p0.p0.i64(ptr %array, ptr @.str, i64 4, i1 false)",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %array, ptr %a, i64 72, i1 false)",
        "  ret void",
    ]
    names = ['"a b"', r'"\01_asm$name"', r'"\C3\A9"', "plain", '"dash-ed@x"']
    functions = [
        f"define {'private' if n == 3 else 'linkonce_odr'} void @{name}(ptr %a, double %d, i8 %b) {{\n"
        + "\n".join(body)
        + "\n}\n"
        for n, name in enumerate(names)
    ]
    functions.append("define void @caller(ptr %a) {\n  call void @plain(ptr %a, double 1.0, i8 0)\n  ret void\n}\n")
    found = instrument(TRIPLE + GLOBALS + "".join(functions))
    for level in ("-O0", "-O2"):
        accepted(found, tmp_path, level, "-fPIC")
    assert len(found.sites) > 5 * 70
