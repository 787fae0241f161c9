"""Reading modules: what clang prints, quirks included."""

import pytest

from recbulc.recorders.ir.calls import decode_call, value_of
from recbulc.recorders.ir.cfg import Flow
from recbulc.recorders.ir.debuginfo import Frame
from recbulc.recorders.ir.memory import CompareExchange, Load, Pointer, ReadModifyWrite, Store, decode
from recbulc.recorders.ir.module import Instruction, parse_module
from recbulc.recorders.ir.operands import closing, split_commas, split_typed

QUIRKS = r"""; ModuleID = 'q.c'
source_filename = "q.c"
target triple = "x86_64-unknown-linux-gnu"

%struct.pair = type { i32, %"class.a b" }
%"class.a b" = type <{ ptr, i8 }>
%opaque = type opaque

$inline = comdat any
$"odd, name" = comdat any

@plain = dso_local global i32 0, align 4
@text = private unnamed_addr constant [12 x i8] c"a\22 = type {\0A\00", align 1
@own = internal thread_local(localexec) global i64 0, section "a = constant b", align 8
@"quoted, name" = external global ptr
@other = alias i32, ptr @plain
@chosen = ifunc void (), ptr @resolver

declare i32 @printf(ptr noundef, ...) #1
declare void @"a(b"(ptr)

; Function Attrs: nounwind
define linkonce_odr dso_local noundef range(i32 0, 5) i32 @inline(i32 noundef %0, ptr byval(%struct.pair) align 8 %1, ...) local_unnamed_addr #0 comdat personality ptr @__gxx_personality_v0 !dbg !5 {
  %3 = alloca i32, align 4
    #dbg_declare(ptr %3, !9, !DIExpression(), !7)
  switch i32 %0, label %8 [
    i32 0, label %4
    i32 -7, label %4
    i32 9, label %6
  ], !dbg !7

4:                                                ; preds = %2, %2
  %5 = phi i32 [ 0, %2 ], [ 0, %2 ]
  br label %8

6:                                                ; preds = %2
  %7 = invoke noundef i32 (ptr, ...) @printf(ptr noundef @text, i32 1)
          to label %8 unwind label %10, !dbg !8

8:                                                ; preds = %6, %4, %2
  %9 = phi i32 [ %5, %4 ], [ %7, %6 ], [ 3, %2 ]
  ret i32 %9

10:                                               ; preds = %6
  %11 = landingpad { ptr, i32 }
          cleanup
          catch ptr @"quoted, name"
  resume { ptr, i32 } %11
}

define internal void @"\01asm name"() #0 {
  br label %"a block"

"a block":                                        ; preds = %0, %"a block"
  %call = call i32 @inline(i32 1, ptr @plain)
  %load = load atomic volatile i32, ptr %"a pointer" syncscope("one thread") acquire, align 4, !tbaa !6
  br i1 undef, label %"a block", label %exit, !llvm.loop !6

exit:                                             ; preds = %"a block"
  ret void
}

attributes #0 = { noredzone nounwind "frame-pointer"="all" }
attributes #1 = { "x"="!5 = y" }

!llvm.module.flags = !{!0}

!0 = !{i32 7, !"Dwarf Version", i32 5}
!1 = distinct !DICompileUnit(language: DW_LANG_C11, file: !2, producer: "a, b: !7 \\ \22c\22")
!2 = !DIFile(filename: "q\C3\A9.c", directory: "/a \22b\22", checksumkind: CSK_MD5, checksum: "00")
!3 = !DIFile(filename: "/abs/in.h", directory: "/a")
!4 = distinct !DISubprogram(name: "inner", linkageName: "_Z5inner", scope: !2, file: !3, line: 3, flags: DIFlagPrototyped | DIFlagStaticMember)
!5 = distinct !DISubprogram(name: "operator()", scope: !2, file: !2, line: 10)
!6 = distinct !{!6, !7}
!7 = !DILocation(line: 12, column: 5, scope: !5)
!8 = !DILocation(line: 4, scope: !10, inlinedAt: !7)
!9 = !DILocalVariable(name: "x", scope: !5)
!10 = distinct !DILexicalBlock(scope: !11, line: 4, column: 1)
!11 = !DILexicalBlockFile(scope: !4, discriminator: 2)
"""  # noqa: E501 (clang wraps no lines)


@pytest.fixture(scope="module")
def module():
    return parse_module(QUIRKS)


def test_globals_types_and_declarations(module):
    assert {name: (found.kind, found.thread_local) for name, found in module.globals.items()} == {
        "@plain": ("global", False),
        "@text": ("constant", False),
        "@own": ("global", True),
        '@"quoted, name"': ("global", False),
        "@other": ("alias", False),
        "@chosen": ("ifunc", False),
    }
    assert [*module.structs] == ["%struct.pair", '%"class.a b"', "%opaque"]
    assert [*module.declarations] == ["@printf", '@"a(b"']
    assert module.lines[module.attributes[0]].startswith("attributes #0 = { noredzone")
    assert module.metadata[0] == '!{i32 7, !"Dwarf Version", i32 5}'


def test_functions_blocks_and_instructions(module):
    inline, named = module.functions
    assert (inline.name, named.name) == ("@inline", r'@"\01asm name"')
    assert inline.parameters() == ["i32 noundef %0", "ptr byval(%struct.pair) align 8 %1", "..."]
    assert (inline.attribute_group, inline.location) == (0, 5)
    assert (named.attribute_group, named.location, named.parameters()) == (0, -1, [])
    assert [block.label for block in inline.blocks] == ["%2", "%4", "%6", "%8", "%10"]
    assert [block.label for block in named.blocks] == ["%0", '%"a block"', "%exit"]
    opcodes = [[instruction.opcode for instruction in block.instructions] for block in inline.blocks]
    assert opcodes == [["alloca", "switch"], ["phi", "br"], ["invoke"], ["phi", "ret"], ["landingpad", "resume"]]
    for function in module.functions:
        assert module.lines[function.end] == "}"
        for instruction in function.instructions():
            assert module.lines[instruction.line] == instruction.text.split("\n")[0]
    assert [block.terminator.successors() for block in inline.blocks] == [
        ["%8", "%4", "%4", "%6"],
        ["%8"],
        ["%8", "%10"],
        [],
        [],
    ]
    assert named.blocks[1].terminator.successors() == ['%"a block"', "%exit"]
    switch, invoke = inline.blocks[0].terminator, inline.blocks[2].terminator
    assert (switch.text.count("\n"), switch.location) == (4, 7)
    assert (invoke.result, invoke.location) == ("%7", 8)
    assert inline.blocks[4].instructions[0].text.endswith('catch ptr @"quoted, name"')


def test_values_may_be_named_like_instructions(module):
    call, load, _ = module.functions[1].blocks[1].instructions
    assert (call.result, call.opcode) == ("%call", "call")
    assert decode_call(call).callee == "@inline"
    assert load.operands.startswith("atomic volatile i32, ptr")
    assert decode(load) == Load("i32", Pointer('%"a pointer"', 0), 4, True, True)


def test_debug_locations_name_the_chain_of_inlining(module):
    outer = Frame("operator()", '/a "b"/qé.c', 12, 5)
    assert module.debug.frames(7) == (outer,)
    assert module.debug.frames(8) == (Frame("inner", "/abs/in.h", 4, 0), outer)
    assert module.debug.frames(6) == ()
    assert module.debug.frames(99) == ()
    assert module.debug.subprogram(4) == Frame("inner", "/abs/in.h", 3, 0)
    assert module.debug.subprogram(-1) is None


def test_flow_names_each_neighbour_once_and_finds_loops(module):
    inline, named = map(Flow, module.functions)
    assert inline.successors == [(3, 1, 2), (3,), (3, 4), (), ()]
    assert inline.predecessors[3] == (0, 1, 2)
    assert inline.loops() == []
    (loop,) = named.loops()
    assert (loop.header, loop.blocks) == (1, {1})


def flow_of(*blocks: str) -> Flow:
    """Blocks by their terminators."""
    body = "".join(f"{chr(97 + n)}:\n  {terminator}\n" for n, terminator in enumerate(blocks))
    return Flow(parse_module(f"define void @f() {{\n{body}}}").functions[0])


def test_nested_loops_come_inner_first_and_share_headers():
    nested = flow_of(
        "br label %b",
        "br i1 0, label %c, label %f",
        "br i1 0, label %c, label %d",
        "br i1 0, label %b, label %e",
        "br label %b",
        "ret void",
    )
    assert [(loop.header, loop.blocks) for loop in nested.loops()] == [(2, {2}), (1, {1, 2, 3, 4})]


def test_ways_round_without_a_header_and_dead_blocks_are_no_loops():
    irreducible = flow_of("br i1 0, label %b, label %c", "br label %c", "br i1 0, label %b, label %d", "ret void")
    assert irreducible.loops() == []
    dead = flow_of("ret void", "br label %c", "br label %b")
    assert dead.loops() == []


def instruction(text: str) -> Instruction:
    return parse_module(f"define void @f() {{\n  {text}\n}}").functions[0].blocks[0].instructions[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%1 = load i32, ptr %0, align 4, !dbg !3", Load("i32", Pointer("%0", 0), 4, False, False)),
        ("%1 = load volatile ptr, ptr @g, align 8", Load("ptr", Pointer("@g", 0), 8, False, True)),
        ("%1 = load i64, ptr addrspace(257) %0", Load("i64", Pointer("%0", 257), 1, False, False)),
        (
            "%1 = load <4 x float>, ptr getelementptr inbounds ([9 x float], ptr @g, i64 0, i64 1), align 4",
            Load(
                "<4 x float>", Pointer("getelementptr inbounds ([9 x float], ptr @g, i64 0, i64 1)", 0), 4, False, False
            ),
        ),
        (
            "store { ptr, i32 } { ptr @f, i32 2 }, ptr %x.addr, align 8",
            Store("{ ptr, i32 }", "{ ptr @f, i32 2 }", Pointer("%x.addr", 0), 8, False, False),
        ),
        (
            "store atomic i8 %v, ptr %p release, align 1",
            Store("i8", "%v", Pointer("%p", 0), 1, True, False),
        ),
        (
            'store [3 x i8] c"a,\\22", ptr %p, align 1',
            Store("[3 x i8]", 'c"a,\\22"', Pointer("%p", 0), 1, False, False),
        ),
        (
            '%2 = atomicrmw volatile umax ptr %0, i64 %1 syncscope("agent") acq_rel, align 8, !dbg !2',
            ReadModifyWrite("umax", "i64", "%1", Pointer("%0", 0)),
        ),
        (
            "%3 = cmpxchg weak volatile ptr @g, i32 %1, i32 -5 acquire monotonic, align 4",
            CompareExchange("i32", "%1", "-5", Pointer("@g", 0)),
        ),
        (
            "%2 = cmpxchg ptr %p, ptr null, ptr %1 seq_cst seq_cst, align 8",
            CompareExchange("ptr", "null", "%1", Pointer("%p", 0)),
        ),
        ("fence seq_cst", None),
        ("%load = add i32 %store, 1", None),
    ],
)
def test_accesses_are_taken_apart(text, expected):
    assert decode(instruction(text)) == expected


@pytest.mark.parametrize(
    ("text", "callee", "arguments"),
    [
        ("call void @f()", "@f", []),
        ("%1 = tail call noundef i64 @strlen(ptr noundef nonnull dereferenceable(1) %0) #9", "@strlen", ["%0"]),
        ("%1 = musttail call fastcc { ptr, i32 } %fp(i32 1, ptr %2)", "%fp", ["1", "%2"]),
        ("%c = call i32 (ptr, ...) @printf(ptr noundef @.str, double 1.5)", "@printf", ["@.str", "1.5"]),
        (
            'call void @"a (b"(ptr getelementptr (i8, ptr @"x y", i64 4))',
            '@"a (b"',
            ['getelementptr (i8, ptr @"x y", i64 4)'],
        ),
        ("call void @f(ptr align 8 byval(%struct.s) %1, i1 false)", "@f", ["%1", "false"]),
        ("call void @f(ptr noundef align 8 inttoptr (i64 64 to ptr))", "@f", ["inttoptr (i64 64 to ptr)"]),
        ("%2 = call %struct.s %1(ptr @f)", "%1", ["@f"]),
    ],
)
def test_calls_are_taken_apart(text, callee, arguments):
    call = decode_call(instruction(text))
    assert call.callee == callee
    assert call.is_indirect == callee.startswith("%")
    assert [value_of(value) for _, value in call.arguments()] == arguments


@pytest.mark.parametrize(
    "text", ['call void asm sideeffect "call f(", "~{memory}"()', "%call = add i32 1, 2", "ret void"]
)
def test_assembly_is_no_call(text):
    assert decode_call(instruction(text)) is None


def test_lists_types_and_brackets():
    assert split_commas('i32 1, { i8, i8 } { i8 1, i8 2 }, [2 x i8] c"\\22,", ptr @"a,b"') == [
        *("i32 1", "{ i8, i8 } { i8 1, i8 2 }", '[2 x i8] c"\\22,"', 'ptr @"a,b"'),
    ]
    assert split_typed("<{ i8, [2 x %s] }> zeroinitializer") == ("<{ i8, [2 x %s] }>", "zeroinitializer")
    assert split_typed("ptr addrspace(3) noundef %x") == ("ptr addrspace(3)", "noundef %x")
    assert closing('f(a, ")", [b])', 1) == 13
    for broken in (lambda: closing("f(a", 1), lambda: split_typed("$ x")):
        with pytest.raises(ValueError, match=r"unbalanced|no type"):
            broken()
