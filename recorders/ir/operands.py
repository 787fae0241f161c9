"""The small grammar inside a line of LLVM IR: names, types and lists separated by commas."""

from __future__ import annotations

import re

NAME = r'[%@](?:[-\w$.]+|"[^"]*")'
LOCAL = re.compile(r'%(?:[-\w$.]+|"[^"]*")')

_OPENING = "([{<"
_CLOSING = ")]}>"
_NESTED = re.compile(r'[(\[{<"]')
_STEP = re.compile(r'"[^"]*"|[(\[{<)\]}>,]')
_WORD = re.compile(r'%(?:[-\w$.]+|"[^"]*")|ptr(?: addrspace\(\d+\))?|target\([^)]*\)|[a-z_]\w*')


def split_commas(text: str) -> list[str]:
    """The parts of `text` between commas that stand outside all brackets and strings."""
    if _NESTED.search(text) is None:
        return text.split(", ")
    parts = []
    depth = start = 0
    for match in _STEP.finditer(text):
        mark = match.group()
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[start : match.start()])
            start = match.end() + 1
    parts.append(text[start:])
    return parts


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens at `opening` closes."""
    depth = 0
    for match in _STEP.finditer(text, opening):
        mark = match.group()
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if depth == 0:
                return match.start()
    raise ValueError(f"unbalanced brackets in {text!r}")


def type_end(text: str, start: int = 0) -> int:
    """Where the type that begins at `start` ends."""
    if text[start] in "[{<":
        return closing(text, start) + 1
    match = _WORD.match(text, start)
    if match is None:
        raise ValueError(f"no type at {start} in {text!r}")
    return match.end()


def split_typed(text: str) -> tuple[str, str]:
    """`i32 %x` as its type and its value; attributes between them stay with the value."""
    end = type_end(text)
    return text[:end], text[end + 1 :]
