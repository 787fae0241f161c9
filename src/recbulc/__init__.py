"""recbulc: reproduce concurrency bugs with local clocks."""

from importlib.metadata import version

__version__ = version("recbulc")
