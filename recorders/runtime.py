"""The preload library librecbulc.so: where it is. What it does is in csrc/rb_runtime.h."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from recbulc.errors import MachineError

LIBRARY = "librecbulc.so"


def library_path() -> Path:
    """The library, to be named in LD_PRELOAD."""
    path = Path(str(files("recbulc.recorders").joinpath(LIBRARY))).resolve()
    if not path.is_file():
        raise MachineError(f"{path} is missing: the runtime has not been built", remedy="make setup")
    return path
