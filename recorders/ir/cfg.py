"""The control flow of a function: edges, dominators, natural loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from recbulc.recorders.ir.module import Function


@dataclass(slots=True)
class Loop:
    """A natural loop: its header, and every block of it (indices into Function.blocks)."""

    header: int
    blocks: set[int] = field(default_factory=set)


class Flow:
    """Edges of a function by index of block; each neighbour is named once however often a terminator names it."""

    def __init__(self, function: Function) -> None:
        index = {block.label: n for n, block in enumerate(function.blocks)}
        self.successors = [
            tuple(dict.fromkeys(index[label] for label in block.terminator.successors())) for block in function.blocks
        ]
        predecessors: list[list[int]] = [[] for _ in function.blocks]
        for source, targets in enumerate(self.successors):
            for target in targets:
                predecessors[target].append(source)
        self.predecessors = [tuple(sources) for sources in predecessors]

    def loops(self) -> list[Loop]:
        """Natural loops, those with one header united; inner loops come before the loops around them."""
        order = self._postorder()
        place = {block: n for n, block in enumerate(order)}
        retreating = [
            (source, target) for source in order for target in self.successors[source] if place[source] <= place[target]
        ]
        if not retreating:
            return []
        dominator = self._dominators(order, place)
        loops: dict[int, Loop] = {}
        for source, header in retreating:
            if self._dominates(header, source, dominator, place):
                loop = loops.setdefault(header, Loop(header, {header}))
                self._collect(loop, source)
        return sorted(loops.values(), key=lambda loop: (len(loop.blocks), loop.header))

    def _collect(self, loop: Loop, tail: int) -> None:
        todo = [tail]
        while todo:
            block = todo.pop()
            if block not in loop.blocks:
                loop.blocks.add(block)
                todo.extend(self.predecessors[block])

    def _postorder(self) -> list[int]:
        """Blocks that can be reached from the entry."""
        order: list[int] = []
        seen = {0}
        stack = [(0, iter(self.successors[0]))]
        while stack:
            block, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self.successors[target])))
                    break
            else:
                order.append(block)
                stack.pop()
        return order

    def _dominators(self, order: list[int], place: dict[int, int]) -> dict[int, int]:
        """Immediate dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm)."""
        dominator = {0: 0}
        changed = True
        while changed:
            changed = False
            for block in reversed(order[:-1]):
                new = -1
                for source in self.predecessors[block]:
                    if source not in dominator:
                        continue
                    if new < 0:
                        new = source
                        continue
                    while new != source:
                        while place[new] < place[source]:
                            new = dominator[new]
                        while place[source] < place[new]:
                            source = dominator[source]  # noqa: PLW2901 (two fingers walk up the tree)
                if dominator.get(block) != new:
                    dominator[block] = new
                    changed = True
        return dominator

    @staticmethod
    def _dominates(upper: int, lower: int, dominator: dict[int, int], place: dict[int, int]) -> bool:
        while place[lower] < place[upper]:
            lower = dominator[lower]
        return lower == upper
