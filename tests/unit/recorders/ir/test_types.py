"""Sizes of types: as the data layout of x86-64 has them."""

import pytest

from recbulc.recorders.ir.types import Layout, element_of

LAYOUT = Layout({"%pair": "{ i8, %inner }", "%inner": "<{ i32, ptr, i8 }>", '%"union.a b"': "{ [3 x i16] }"})


@pytest.mark.parametrize(
    ("name", "stored", "apart", "alignment"),
    [
        ("i1", 1, 1, 1),
        ("i24", 3, 4, 4),
        ("i33", 5, 8, 8),
        ("i64", 8, 8, 8),
        ("i128", 16, 16, 16),
        ("half", 2, 2, 2),
        ("double", 8, 8, 8),
        ("x86_fp80", 10, 16, 16),
        ("fp128", 16, 16, 16),
        ("ptr", 8, 8, 8),
        ("ptr addrspace(1)", 8, 8, 8),
        ("[0 x i64]", 0, 0, 8),
        ("[3 x i24]", 12, 12, 4),
        ("[2 x [3 x i8]]", 6, 6, 1),
        ("<4 x float>", 16, 16, 16),
        ("<3 x i32>", 12, 16, 16),
        ("<8 x i1>", 1, 1, 1),
        ("<2 x ptr>", 16, 16, 16),
        ("{ i8, i64, i8 }", 24, 24, 8),
        ("<{ i8, i64, i8 }>", 10, 10, 1),
        ("<{ i8, <4 x i32> }>", 17, 17, 1),
        ("{ i8, <4 x i32> }", 32, 32, 16),
        ("{}", 0, 0, 1),
        ("%pair", 14, 14, 1),
        ('%"union.a b"', 6, 6, 2),
    ],
)
def test_sizes(name, stored, apart, alignment):
    assert (LAYOUT.store_bytes(name), LAYOUT.alloc_bytes(name), LAYOUT.alignment(name)) == (stored, apart, alignment)


@pytest.mark.parametrize("name", ["void", "label", "token", "metadata", "[x]"])
def test_what_has_no_size_is_refused(name):
    with pytest.raises(ValueError, match="has no size"):
        LAYOUT.store_bytes(name)


def test_elements():
    assert element_of("<4 x float>") == (4, "float")
    assert element_of("[2 x [3 x i8]]") == (2, "[3 x i8]")
