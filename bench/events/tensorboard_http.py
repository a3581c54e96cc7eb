"""Starts real TensorBoard on a copy of a log directory, asks it over HTTP as its page of scalars does, and prints how
long it took from the start until every run, and then every point of one tag, was there; how long a new point
of one run took to be visible; and how much CPU time the data server takes while nothing changes.

    tensorboard_http.py LOGDIR TMP [--server BINARY]

Without --server TensorBoard uses the data server that comes with it.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

try:
    import tensorboard_data_server
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)

ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+?)/? ")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
POINTS = 5  # added one by one to see how soon they are visible
IDLE = 10  # seconds
TIMEOUT = 120


class Board:
    """A running TensorBoard; a context manager."""

    def __init__(self, binary, logdir):
        self._log = tempfile.NamedTemporaryFile(suffix=".log")
        self._env = {**os.environ, "TENSORBOARD_DATA_SERVER_BINARY": binary, "no_proxy": "127.0.0.1,localhost"}
        self._args = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", "--load_fast=true", "--host=127.0.0.1",
                      "--port=0", "--samples_per_plugin=scalars=1000000"]

    def __enter__(self):
        self.began = time.perf_counter()
        self._popen = subprocess.Popen(self._args, env=self._env, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
                                       start_new_session=True)
        self._url = self.until(lambda: ADDRESS.search(pathlib.Path(self._log.name).read_text()))[1]
        return self

    def __exit__(self, *_):
        os.killpg(self._popen.pid, signal.SIGTERM)
        self._popen.wait()
        self._log.close()

    def until(self, ask):
        """What ask returns, once that is something."""
        while time.perf_counter() - self.began < TIMEOUT:
            if answer := ask():
                return answer
            if self._popen.poll() is not None:
                raise SystemExit(f"TensorBoard ended with {self._popen.returncode}: {pathlib.Path(self._log.name).read_text()}")
            time.sleep(0.005)
        raise SystemExit(f"TensorBoard does not show it within {TIMEOUT} s")

    def get(self, path, **query):
        data = urllib.parse.urlencode(query.pop("form")).encode() if "form" in query else None
        url = f"{self._url}/data/plugin/scalars/{path}?{urllib.parse.urlencode(query)}"
        try:
            with OPENER.open(urllib.request.Request(url, data), timeout=TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            return {}

    def server_cpu(self):
        """The CPU seconds of the data server, a child of TensorBoard."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self._popen.pid:
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        raise SystemExit("TensorBoard has no data server")


def copy(logdir, tmp):
    """The runs may not be written to: other contestants read them, too."""
    subprocess.run(["cp", "-r", logdir, tmp], check=True)
    return pathlib.Path(tmp, pathlib.Path(logdir).name)


def add(path, tag, step):
    value = summary_pb2.Summary.Value(tag=tag, simple_value=step)
    event = event_pb2.Event(wall_time=time.time(), step=step, summary=summary_pb2.Summary(value=[value]))
    with open(path, "ab") as file:
        RecordWriter(file).write(event.SerializeToString())


def visible(board, path, run, tag, step):
    """The seconds until a point is visible that is added now."""
    add(path, tag, step)
    added = time.perf_counter()
    board.until(lambda: any(point[1] == step for point in board.get("scalars", run=run, tag=tag)))
    return time.perf_counter() - added


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logdir")
    parser.add_argument("tmp")
    parser.add_argument("--server", default=None)
    parser.add_argument("-n", help="how much there is to read; the race says so")
    args = parser.parse_args()
    logdir = copy(args.logdir, args.tmp)
    files = sorted(logdir.rglob("*tfevents*"))
    runs = [str(file.parent.relative_to(logdir)) for file in files]
    with Board(args.server or tensorboard_data_server.server_binary(), logdir) as board:
        tags = board.until(lambda: len(of := board.get("tags")) == len(runs) and of)
        tag = sorted(tags[runs[0]])[0]
        metrics = {"listed_seconds": time.perf_counter() - board.began}
        form = [("tag", tag), *(("runs", run) for run in runs)]
        points = -1
        while points != (points := sum(map(len, board.get("scalars_multirun", form=form).values()))) or not points:
            pass  # a file may have been read in part only
        seconds = time.perf_counter() - board.began
        cpu = board.server_cpu()
        last = max(point[1] for point in board.get("scalars", run=runs[-1], tag=tag))
        ages = [visible(board, files[-1], runs[-1], tag, last + 1 + i) for i in range(POINTS)]
        metrics |= {"visible_ms": 1e3 * statistics.median(ages), "visible_worst_ms": 1e3 * max(ages)}
        time.sleep(3)  # what the last point has caused is over
        before = board.server_cpu()
        time.sleep(IDLE)
        metrics["idle_cpu_s_per_hour"] = (board.server_cpu() - before) / IDLE * 3600
    work = f"{len(runs)} runs, {points} points of one tag, {POINTS} more"
    print(json.dumps({"work": work, "seconds": seconds, "cpu_seconds": cpu, "metrics": metrics}))


if __name__ == "__main__":
    main()
