"""Claims about order against what a simulated run really did."""

from itertools import permutations

from recbulc.ordering.ops import ThreadOps


def true_places(simulator, threads: list[ThreadOps]):
    """Where each operation stands in the true order; None for what never took effect."""
    at = {(t, event, part): n for n, (t, event, part) in enumerate(simulator.truth)}
    return [
        [at.get((t, int(e), int(p))) for e, p in zip(ops.index, ops.part, strict=True)] for t, ops in enumerate(threads)
    ]


def claimed_wrongly(simulator, threads: list[ThreadOps], bounds):
    """Pairs of operations that are claimed to be in an order in which they were not."""
    true = true_places(simulator, threads)
    wrong = []
    for a, b in permutations(range(len(true)), 2):
        for j, row in enumerate(bounds[b]):
            if true[b][j] is None:
                continue
            wrong.extend(((a, i), (b, j)) for i in range(int(row[a])) if true[a][i] is None or true[a][i] > true[b][j])
    return wrong
