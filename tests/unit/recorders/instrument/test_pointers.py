"""Which memory other threads can reach, and which addresses a record may name."""

import pytest

from recbulc.recorders.instrument.pointers import Pointers
from recbulc.recorders.ir.module import parse_module

GLOBALS = """
@g = global i32 0
@tls = thread_local global i32 0
@fixed = constant i32 7
@rb_pieces = hidden global i8 0
declare void @use(ptr)
"""


def pointers(*body: str, parameters: str = "ptr %a, i1 %c") -> Pointers:
    """Of a function with this body."""
    text = "\n".join(f"  {line}" for line in body)
    module = parse_module(f"{GLOBALS}define void @f({parameters}) {{\n{text}\n  ret void\n}}\n")
    return Pointers(module, module.functions[0])


@pytest.mark.parametrize("pointer", ["@g", "%a", "@tls", "null", "inttoptr (i64 64 to ptr)"])
def test_what_others_reach_is_shared(pointer):
    assert not pointers().is_private(pointer)


@pytest.mark.parametrize("pointer", ["@fixed", "@rb_pieces", "getelementptr inbounds (i8, ptr @fixed, i64 1)"])
def test_what_nobody_changes_is_not(pointer):
    assert pointers().is_private(pointer)


def test_a_frame_object_that_is_only_accessed_is_private():
    found = pointers(
        "%x = alloca [4 x i32]",
        "%at = getelementptr inbounds nuw [4 x i32], ptr %x, i64 0, i64 %i",
        "store i32 1, ptr %at",
        "%v = load i32, ptr %x",
        "%old = atomicrmw add ptr %at, i32 1 seq_cst",
        "call void @llvm.lifetime.start.p0(i64 4, ptr %x)",
        "call void @llvm.memset.p0.i64(ptr %x, i8 0, i64 16, i1 false)",
        "%e = icmp eq ptr %x, null",
    )
    assert found.is_private("%x")
    assert found.is_private("%at")
    assert found.needs_register("%at")


@pytest.mark.parametrize(
    "escape",
    [
        "call void @use(ptr %at)",
        "store ptr %at, ptr @g",
        "%n = ptrtoint ptr %at to i64",
        "%o = atomicrmw xchg ptr @g, ptr %at seq_cst",
        "%o = cmpxchg ptr @g, ptr null, ptr %at seq_cst seq_cst",
        "%o = insertvalue { ptr, i32 } poison, ptr %at, 0",
        'call void asm "", "*m"(ptr elementtype(i32) %at)',
        "call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %at, i64 65, i1 false)",
        "call void @llvm.va_start(ptr %at)",
    ],
)
def test_an_address_that_goes_anywhere_else_is_not(escape):
    found = pointers("%x = alloca [4 x i32]", "%at = getelementptr i8, ptr %x, i64 4", escape)
    assert not found.is_private("%x")
    assert not found.is_private("%at")


def test_all_accesses_of_an_object_are_recorded_or_none():
    """A local that is also accessed through a pointer that may be another's."""
    body = ["%x = alloca i32", "%y = alloca i32", "%z = alloca i32", "%p = select i1 %c, ptr %x, ptr %y"]
    mixed = pointers(*body, "%q = select i1 %c, ptr %y, ptr %a", "store i32 1, ptr %p", "%v = load i32, ptr %q")
    assert [mixed.is_private(name) for name in ("%x", "%y", "%z", "%p", "%q")] == [False, False, True, False, False]


def test_a_copy_through_a_mixed_pointer_counts_too():
    copy = "call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %q, i64 4, i1 false)"
    found = pointers("%x = alloca i32", "%y = alloca i32", "%q = select i1 %c, ptr %y, ptr @g", copy)
    assert found.is_private("%x")
    assert not found.is_private("%y")
    assert not found.is_private("%q")


def test_loops_of_phis_end():
    module = parse_module(
        "define void @f(ptr %a) {\n  %x = alloca i32\n  br label %l\nl:\n"
        "  %p = phi ptr [ %x, %0 ], [ %q, %l ]\n  %q = getelementptr i32, ptr %p, i64 1\n"
        "  %v = load i32, ptr %q\n  br i1 true, label %l, label %e\ne:\n  ret void\n}\n"
    )
    found = Pointers(module, module.functions[0])
    assert not found.is_private("%x")
    assert not found.is_private("%q")
    assert found.needs_register("%p")


@pytest.mark.parametrize(
    ("pointer", "in_register"),
    [
        ("%x", True),
        ("%t", True),
        ("@tls", True),
        ("%n", True),
        ("%b", True),
        ("%a", False),
        ("@g", False),
        ("%l", False),
    ],
)
def test_addresses_that_may_depend_on_the_stack_pointer_go_through_a_register(pointer, in_register):
    found = pointers(
        "%x = alloca i32",
        "%t = call ptr @llvm.threadlocal.address.p0(ptr @tls)",
        "%i = ptrtoint ptr %x to i64",
        "%n = inttoptr i64 %i to ptr",
        "%l = load ptr, ptr %a",
        parameters="ptr %a, ptr byval(i32) align 8 %b",
    )
    assert found.needs_register(pointer) is in_register


def test_what_is_passed_by_value_belongs_to_the_frame():
    assert pointers("%v = load i32, ptr %b", parameters="ptr byval({ i64, ptr }) align 8 %b").is_private("%b")
