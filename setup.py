"""Native parts only; everything else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["src/recbulc/tsc_probe/build_probe.py:ffibuilder"])
