"""Interleavings on a terminal: one column per thread."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.table import Table
from rich.text import Text

from recbulc.report.findings import value_text, verdict_sentence
from recbulc.report.interleaving import Gap, Interleaving, Mark, Row

STYLES = {Mark.NONE: "", Mark.RACING: "bold yellow", Mark.BLOCKED: "bold red", Mark.FAILED: "bold red"}
SIGNS = {Mark.NONE: "", Mark.RACING: "▶", Mark.BLOCKED: "■", Mark.FAILED: "✗"}


def interleaving_table(interleaving: Interleaving) -> Table:
    """The rows around the failure; `▶` is of the racing pair, `■` waits for ever, `✗` is where it failed."""
    shown = interleaving.around_the_failure()
    threads = interleaving.columns(shown)
    files = {row.file for row in shown if isinstance(row, Row)}
    table = Table(
        title=f"the failing interleaving, first to last: {verdict_sentence(interleaving.verdict)}",
        title_justify="left",
    )
    table.add_column("")
    for thread in threads:
        table.add_column(f"thread {interleaving.threads[thread]}", overflow="fold")
    for row in shown:
        if isinstance(row, Gap):
            table.add_row("", *(Text(f"… {row.rows} more" if i == 0 else "…", "dim") for i in range(len(threads))))
        else:
            cell = Text(_cell(row, short=len(files) == 1), STYLES[row.mark])
            table.add_row(SIGNS[row.mark], *(cell if thread == row.thread else "" for thread in threads))
    return table


def notes_of(interleaving: Interleaving) -> Iterable[str]:
    """What must be said about it."""
    for file in interleaving.stale:
        yield f"{file} was changed after the program was built: the lines shown are those of today"


def _cell(row: Row, *, short: bool) -> str:
    where = f"{row.line}" if short else f"{Path(row.file).name}:{row.line}"
    value = f"  [{value_text(row.value)}]" if row.value is not None else ""
    return f"{where} {row.text or ', '.join(row.did)}{value}"
