"""The layout that CONTRIBUTING describes."""

import re
from pathlib import Path

from recbulc.cli.main import COMMANDS

TOP = Path(__file__).parents[2]
STAGES = ["tsc_probe", "calibration", "recorders", "ordering", "solver", "replay", "report", "cli"]
THERE = [stage for stage in STAGES if (TOP / stage).is_dir()]
SHARED = {"errors", "schedule"}  # value types that every stage may use
IMPORT = re.compile(r"^\s*(?:from|import) recbulc\.(\w+)", re.MULTILINE)


def test_every_stage_is_importable_through_its_link():
    links = {path.name: path for path in (TOP / "src/recbulc").iterdir() if path.is_symlink()}
    assert set(links) == set(THERE)
    for name, link in links.items():
        assert not link.readlink().is_absolute()
        assert link.resolve() == TOP / name
        assert (link / "__init__.py").is_file()


def test_a_stage_imports_only_what_stands_left_of_it():
    for stage in THERE:
        allowed = {*STAGES[: STAGES.index(stage) + 1], *SHARED}
        if stage == "cli":
            allowed |= {"reproduce", "__version__"}
        for path in (TOP / stage).rglob("*.py"):
            used = set(IMPORT.findall(path.read_text()))
            assert used <= allowed, f"{path} imports {used - allowed}"


def test_a_command_is_a_file():
    for name in COMMANDS:
        assert (TOP / "cli" / f"{name}.py").is_file()
