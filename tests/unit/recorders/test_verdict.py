"""What counts as a failure."""

import os
from pathlib import Path

import numpy as np
import pytest

from recbulc.errors import InputError
from recbulc.recorders.control import THREAD
from recbulc.recorders.events import Kind
from recbulc.recorders.runner import Blocked, Launch, RunResult
from recbulc.recorders.verdict import DEFAULT, FailIf, signal_name

LAUNCH = Launch(Path("/bin/true"), ("true",), dict(os.environ), Path("/"))
BLOCKED = (Blocked(1, "0.1", Kind.MUTEX_LOCK, 12, 0x1000), Blocked(2, "0.2", Kind.COND_WAIT, 0, 0x2000))


def ended(how="exit", code=0, stdout=b"", stderr=b"", blocked=()) -> RunResult:
    return RunResult(how, code, 0.5, stdout, stderr, np.zeros(0, dtype=THREAD), blocked)


def judged(run: RunResult, *texts: str):
    return FailIf.parse(texts).judge(run, LAUNCH)


@pytest.mark.parametrize(
    ("run", "how", "code", "detail"),
    [
        (ended(), "passed", 0, ""),
        (ended(code=3), "exit", 3, "exit code 3"),
        (ended("signal", 11), "signal", 11, "SIGSEGV"),
        (ended("timeout"), "timeout", 0, "not finished after 0.5 s"),
        (ended("deadlock", blocked=BLOCKED), "deadlock", 0, "2 threads wait for ever"),
    ],
)
def test_what_fails_by_default(run, how, code, detail):
    verdict = judged(run)
    assert (verdict.how, verdict.code, verdict.detail, verdict.fail_if) == (how, code, detail, DEFAULT)
    assert verdict.failed == (how != "passed")


def test_a_deadlock_says_who_waits_where():
    assert judged(ended("deadlock", blocked=BLOCKED)).blocked == (("0.1", "MUTEX_LOCK", 12), ("0.2", "COND_WAIT", -1))


@pytest.mark.parametrize(
    ("text", "run", "how"),
    [
        ("exit", ended("signal", 6), "passed"),
        ("exit:3", ended(code=3), "exit"),
        ("exit:3", ended(code=4), "passed"),
        ("exit:0", ended(), "exit"),
        ("signal:SEGV", ended("signal", 11), "signal"),
        ("signal:sigsegv", ended("signal", 11), "signal"),
        ("signal:11", ended("signal", 11), "signal"),
        ("signal:ABRT", ended("signal", 11), "passed"),
        ("timeout", ended("deadlock"), "timeout"),
        ("deadlock", ended("timeout"), "passed"),
        ("regex:^wrong: \\d+$", ended(stdout=b"fine\nwrong: 17\n"), "regex"),
        ("regex:wrong", ended(stderr=b"wrong", code=1), "regex"),
        ("regex:wrong", ended(code=1), "passed"),
        ("cmd:grep -q wrong", ended(stdout=b"wrong\n"), "cmd"),
        ("cmd:grep -q wrong", ended(stdout=b"right\n"), "passed"),
        ('cmd:test "$RECBULC_HOW $RECBULC_CODE" = "signal 6"', ended("signal", 6), "cmd"),
    ],
)
def test_predicates(text, run, how):
    assert judged(run, text).how == how


def test_the_first_that_holds_is_the_verdict():
    run = ended(code=2, stdout=b"wrong: 3")
    assert judged(run, "regex:wrong: .", "exit").detail == "wrong: 3"
    assert judged(run, "exit", "regex:wrong").how == "exit"
    assert judged(run, "signal", "timeout").detail == "exit code 2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no predicate"),
        ("crash", "no predicate"),
        ("regex", "no predicate"),
        ("regex:", "no predicate"),
        ("cmd:", "no predicate"),
        ("timeout:3", "no predicate"),
        ("exit:", "no predicate"),
        ("exit:x", "no exit code"),
        ("signal:NONE", "no such signal"),
        ("regex:(", "unterminated"),
    ],
)
def test_what_is_no_predicate_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        FailIf.parse([text])


def test_a_command_that_cannot_be_run_is_no_verdict():
    with pytest.raises(InputError, match="cannot be run"):
        judged(ended(), "cmd:/nowhere/judge")


def test_signals_without_a_name():
    assert signal_name(6) == "SIGABRT"
    assert signal_name(64) == "SIGRTMAX"
    assert signal_name(200) == "signal 200"
