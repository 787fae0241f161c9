"""Native parts only; everything else is in pyproject.toml."""

import platform
import sys

from setuptools import setup

if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
    sys.exit(f"recbulc runs on Linux x86-64; this is {platform.system()} {platform.machine()}")

setup(cffi_modules=["src/recbulc/tsc_probe/build_probe.py:ffibuilder"])
