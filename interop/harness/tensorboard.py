"""Starts real TensorBoard on a logdir, waits until it has loaded it, and asks it over HTTP.

TensorBoard has two loaders that disagree in details: the one in Python (--load_fast=false) and the data server
(--load_fast=true), which is what most users see. Both are told to read the logdir once, to the end, and to keep every
point, so that what they serve can be compared with what is in the files.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from harness.commands import PATIENCE
from harness.dataserver import LOADED

LOADERS = {"python": "--load_fast=false", "data-server": "--load_fast=true"}

# The data server that we bring, which TensorBoard starts in place of its own.
OURS = "tfevents"

_KEEP_ALL = ",".join(f"{plugin}=1000000" for plugin in ("scalars", "histograms", "distributions", "images", "text"))
_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+?)/? ")


# Proxies are for the world outside; both we and TensorBoard (to its data server) speak to this machine only.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_ENV = {"TF_CPP_MIN_LOG_LEVEL": "3", "no_proxy": "127.0.0.1,localhost"}


class TensorBoard:
    """One running TensorBoard; a context manager. Its HTTP answers come back as Python values."""

    def __init__(self, logdir, loader="python", timeout=PATIENCE):
        self.loader = loader
        self._args = _arguments(logdir, loader)
        self._timeout = timeout
        self._log = tempfile.NamedTemporaryFile(prefix="tensorboard-", suffix=".log")
        self._popen = None
        self.url = ""

    def __enter__(self):
        self._popen = subprocess.Popen(
            self._args,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **_ENV, **_server(self.loader)},
            start_new_session=True,
        )
        try:
            self._wait_until_loaded()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        _stop_group(self._popen)
        self._log.close()

    @property
    def group(self):
        """The process group of TensorBoard and what it starts."""
        return self._popen.pid

    @property
    def log(self):
        with open(self._log.name, encoding="utf-8", errors="replace") as log:
            return log.read()

    def get(self, path, **query):
        """The body of GET /data/<path>, as bytes."""
        url = f"{self.url}/data/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        try:
            with _OPENER.open(url, timeout=self._timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: HTTP {error.code}: {error.read()[:500]!r}\n{self.log}") from error

    def json(self, path, **query):
        return json.loads(self.get(path, **query))

    def runs(self):
        return self.json("runs")

    def scalar_tags(self):
        """{run: set of tags}"""
        return _tags(self.json("plugin/scalars/tags"))

    def histogram_tags(self):
        return _tags(self.json("plugin/histograms/tags"))

    def scalars(self, run, tag):
        """[(step, value, wall time), ...]; non-finite values come back as floats."""
        points = self.json("plugin/scalars/scalars", run=run, tag=tag)
        return [(step, float(value), wall) for wall, step, value in points]

    def histograms(self, run, tag):
        """[(step, [[left, right, count], ...]), ...]"""
        return [(step, buckets) for _, step, buckets in self.json("plugin/histograms/histograms", run=run, tag=tag)]

    def graph_text(self, run):
        """The graph that the Graphs page shows: a GraphDef in text form."""
        return self.get("plugin/graphs/graph", run=run, conceptual="false").decode()

    def runs_with_graph(self):
        return {run for run, info in self.json("plugin/graphs/info").items() if info["run_graph"]}

    def _wait_until_loaded(self):
        deadline = time.monotonic() + self._timeout
        while not self._loaded():
            if self._popen.poll() is not None:
                raise AssertionError(f"TensorBoard ended with code {self._popen.returncode}:\n{self.log}")
            if time.monotonic() > deadline:
                raise AssertionError(f"TensorBoard not ready after {self._timeout} s:\n{self.log}")
            time.sleep(0.1)

    def _loaded(self):
        address = _ADDRESS.search(self.log)
        if not address:
            return False
        self.url = address[1]
        return self.loader == "python" or LOADED in self.log


def _arguments(logdir, loader):
    args = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1", "--port", "0"]
    args += [LOADERS.get(loader, "--load_fast=true"), "--reload_interval=0", f"--samples_per_plugin={_KEEP_ALL}"]
    # Only after its first full read does the Python loader start to answer; the data server says so in its log.
    return args + (["--reload_task=blocking"] if loader == "python" else ["--extra_data_server_flags=--verbose"])


def _server(loader):
    """The environment in which TensorBoard finds the data server."""
    if loader != OURS:
        return {}
    return {"TENSORBOARD_DATA_SERVER_BINARY": os.path.join(os.environ["TRAINERD_BIN_DIR"], "tfevents")}


def _tags(answer):
    return {run: set(tags) for run, tags in answer.items()}


def _stop_group(popen):
    """Ends the process and its children (the data server is one), politely first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(timeout=10)
            if number == signal.SIGKILL:
                return
