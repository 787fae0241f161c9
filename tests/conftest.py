import os

import pytest

if len(os.sched_getaffinity(0)) < 2:
    pytest.exit("the tests need two cores in the affinity mask", returncode=3)
