"""Memory and string functions: which are opened up in place, and which go to our own copies (strings/rb_string.c).

Both ways every piece of at most eight bytes is an access of its own, so that a torn copy can be expressed.
"""

from __future__ import annotations

from dataclasses import dataclass

from recbulc.recorders.ir.calls import Call, value_of

INLINE_BYTES = 64  # intrinsics of at most so many bytes are opened up
PREFIX = "__rb_"
PIECES = "@rb_pieces"  # defined by rb_string.c: whether our copies do the work

# name: return type and parameters, as declared for our own copy
STRING_FUNCTIONS = {
    "memcpy": "ptr (ptr, ptr, i64)",
    "memmove": "ptr (ptr, ptr, i64)",
    "mempcpy": "ptr (ptr, ptr, i64)",
    "memset": "ptr (ptr, i32, i64)",
    "memcmp": "i32 (ptr, ptr, i64)",
    "bcmp": "i32 (ptr, ptr, i64)",
    "memchr": "ptr (ptr, i32, i64)",
    "strlen": "i64 (ptr)",
    "strnlen": "i64 (ptr, i64)",
    "strcpy": "ptr (ptr, ptr)",
    "strncpy": "ptr (ptr, ptr, i64)",
    "stpcpy": "ptr (ptr, ptr)",
    "strcat": "ptr (ptr, ptr)",
    "strncat": "ptr (ptr, ptr, i64)",
    "strcmp": "i32 (ptr, ptr)",
    "strncmp": "i32 (ptr, ptr, i64)",
    "strchr": "ptr (ptr, i32)",
    "strrchr": "ptr (ptr, i32)",
    "strdup": "ptr (ptr)",
    # what -D_FORTIFY_SOURCE makes of them: the last parameter is the room there is
    "__memcpy_chk": "ptr (ptr, ptr, i64, i64)",
    "__memmove_chk": "ptr (ptr, ptr, i64, i64)",
    "__mempcpy_chk": "ptr (ptr, ptr, i64, i64)",
    "__memset_chk": "ptr (ptr, i32, i64, i64)",
    "__strcpy_chk": "ptr (ptr, ptr, i64)",
    "__stpcpy_chk": "ptr (ptr, ptr, i64)",
    "__strncpy_chk": "ptr (ptr, ptr, i64, i64)",
    "__strcat_chk": "ptr (ptr, ptr, i64)",
    "__strncat_chk": "ptr (ptr, ptr, i64, i64)",
}

_INTRINSICS = {"@llvm.memcpy.": "memcpy", "@llvm.memmove.": "memmove", "@llvm.memset.": "memset"}


@dataclass(frozen=True, slots=True)
class MemoryIntrinsic:
    """`llvm.memcpy` and its like. `source` is the byte (as an i8) for memset; `size` is -1 where it varies."""

    function: str
    target: str
    source: str
    length: str
    size: int


def decode_intrinsic(call: Call) -> MemoryIntrinsic | None:
    """The memory intrinsic that a call is, if it is one (of memory in the plain address space)."""
    if not call.callee.startswith("@llvm.mem"):
        return None
    for prefix, function in _INTRINSICS.items():
        if call.callee.startswith(prefix):
            arguments = call.arguments()
            if any("addrspace" in kind for kind, _ in arguments) or arguments[2][0] != "i64":
                return None
            target, source, length = (value_of(value) for _, value in arguments[:3])
            return MemoryIntrinsic(function, target, source, length, int(length) if length.isdigit() else -1)
    return None


def is_inlined(call: Call) -> bool:
    """Is it a memory intrinsic that is opened up in place?"""
    intrinsic = decode_intrinsic(call)
    return intrinsic is not None and 0 <= intrinsic.size <= INLINE_BYTES


def pieces(size: int) -> list[tuple[int, int]]:
    """Offset and size of the pieces of 8, 4, 2 and 1 bytes that an access of `size` bytes falls into."""
    result = []
    offset = 0
    for piece in (8, 4, 2, 1):
        while size - offset >= piece:
            result.append((offset, piece))
            offset += piece
    return result


def declaration(function: str) -> str:
    """Of our own copy of a string function."""
    returned, _, parameters = STRING_FUNCTIONS[function].partition(" ")
    return f"declare hidden {returned} @{PREFIX}{function}{parameters}"
