"""Fixtures of the interop suite, and the rule that with INTEROP=required nothing may be skipped."""

import contextlib
import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import types

# Before anything imports TensorFlow: quiet, on the processor, and the same sums every time.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import pytest

from cluster import Cluster
from harness import browser as chromium
from harness import commands as cmd
from harness import tensorboard as tb
from harness.replica import Replica

REQUIRED = os.environ.get("INTEROP") == "required"

# It is for an environment of its own, with packages that the suite does not need.
collect_ignore = [] if importlib.util.find_spec("sklearn") else ["test_public_tables.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _refuse_skip((yield))


def _refuse_skip(report):
    """Turns a skip into a failure where INTEROP=required asks for it."""
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which INTEROP=required makes a failure: {report.longrepr[-1]}"
    return report


@pytest.fixture(scope="session")
def bin_dir():
    """The folder with the built commands."""
    path = os.environ.get("TRAINERD_BIN_DIR")
    if not path:
        pytest.skip("TRAINERD_BIN_DIR does not name the folder with the built commands")
    return pathlib.Path(path).resolve(strict=True)


@pytest.fixture(scope="session")
def ckpt(bin_dir):
    """Runs ckpt, which must end with the exit code, unless that is None."""

    def run(*args, code=0, text=True):
        done = subprocess.run([bin_dir / "ckpt", *map(str, args)], capture_output=True, text=text, timeout=120)
        assert code in (None, done.returncode), f"ckpt {args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def commands(bin_dir, tmp_path_factory):
    return cmd.Commands(bin_dir, tmp_path_factory.mktemp("commands"))


@pytest.fixture(scope="session")
def digits(commands, tmp_path_factory):
    """One full training of the example, which many tests look at: its result and its logdir. Nobody changes it."""
    logdir = tmp_path_factory.mktemp("digits") / "logdir"
    result = cmd.assert_success(commands.train(logdir))
    return types.SimpleNamespace(logdir=logdir, result=result)


@pytest.fixture(scope="session", params=tb.LOADERS)
def digits_board(request, digits):
    """Real TensorBoard on the digits run, once for each of its loaders."""
    with tb.TensorBoard(digits.logdir, request.param) as board:
        yield board


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """A logdir with one value of every kind that package tfevents writes."""
    logdir = tmp_path_factory.mktemp("kinds")
    go = shutil.which("go")
    if not go:
        pytest.skip("no Go here to build the writer of all kinds with")
    subprocess.run([go, "run", "./interop/emitevents", logdir], cwd=cmd.REPO, check=True)
    return logdir


@pytest.fixture(scope="session")
def kinds_boards(kinds):
    """Real TensorBoard on that logdir, by the name of the loader; each is started once."""
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda loader: stack.enter_context(tb.TensorBoard(kinds, loader)))


@pytest.fixture(scope="session")
def chromium_path():
    path = chromium.find()
    if not path:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    return path


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """A parameter server and two workers."""
    with Cluster(tmp_path_factory.mktemp("servers"), spare=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(servers):
    """The servers, all of them alive, and without what other tests have left on them."""
    servers.mend()
    servers.reset()
    return servers


@pytest.fixture
def replica(cluster, commands, tmp_path):
    """Starts the processes of a job on the servers; they end with the test."""
    start = Replica(cluster, commands, tmp_path / "logdir")
    yield start
    start.kill()
