"""Lets a data server of TensorBoard load a log directory, every point kept and
every checksum tested, asks it for everything over gRPC, and prints how long that
took and what it holds.

    data_server.py LOGDIR [--server BINARY]

Without --server it is the one that comes with TensorBoard. "seconds" and
"cpu_seconds" are those of loading.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

try:
    import grpc
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2 as pb
    from tensorboard.data.proto import data_provider_pb2_grpc
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)

LOADED = "Finished load cycle"
EVERYTHING = 1 << 30
RUNS = 50  # whose points are asked for at once


class Server:
    """A data server that reads a log directory once, or every second; a context manager."""

    def __init__(self, binary, logdir, reload="once"):
        self._tmp = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self._tmp.name, "port")
        command = [binary, f"--logdir={logdir}", f"--reload={reload}", "--port=0", f"--port-file={port_file}", "--checksum",
                   "--samples-per-plugin=scalars=all,images=all,histograms=all", "--verbose", "--die-after-stdin"]
        self.began = time.perf_counter()
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (port_file.exists() and port_file.read_text().endswith("\n")):
            if self._popen.poll() is not None:
                raise SystemExit(f"the data server ended with code {self._popen.returncode}")
            time.sleep(0.001)
        # What a request of everything takes; and one that this machine's proxy does not see.
        options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
        channel = grpc.insecure_channel(f"localhost:{int(port_file.read_text())}", options=options)
        self.stub = data_provider_pb2_grpc.TensorBoardDataProviderStub(channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._popen.stdin.close()
        self._popen.wait()
        self._tmp.cleanup()

    def wait_until_loaded(self):
        """Waits for the end of the first load cycle and returns when that was. The log is read on, and dropped."""
        for line in self._popen.stderr:
            if LOADED in line:
                break
        else:
            raise SystemExit(f"the data server ended with code {self._popen.wait()}")
        loaded = time.perf_counter()
        threading.Thread(target=lambda: [None for _ in self._popen.stderr], daemon=True).start()
        return loaded

    def cost(self):
        """The CPU seconds and the largest memory, in MiB, of the server so far."""
        ticks = pathlib.Path(f"/proc/{self._popen.pid}/stat").read_text().rpartition(")")[2].split()
        status = pathlib.Path(f"/proc/{self._popen.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"), peak / 1024

    def first_values(self):
        """Asks until there is a plugin with values, and returns when that was."""
        while not self.stub.ListPlugins(pb.ListPluginsRequest()).plugins:
            time.sleep(0.005)
        return time.perf_counter()

    def read(self, plugin, points=EVERYTHING, runs=None):
        """The answers to the three questions about the values of a plugin, of the given runs or of all."""
        request = dict(plugin_filter=pb.PluginFilter(plugin_name=plugin), downsample=pb.Downsample(num_points=points))
        if runs is not None:
            request["run_tag_filter"] = pb.RunTagFilter(runs=pb.RunFilter(names=runs))
        yield self.stub.ReadScalars(pb.ReadScalarsRequest(**request))
        yield self.stub.ReadTensors(pb.ReadTensorsRequest(**request))
        yield self.stub.ReadBlobSequences(pb.ReadBlobSequencesRequest(**request))

    def contents(self):
        """How many series and points the server holds, and the sum of their steps."""
        series = points = steps = 0
        runs = [run.name for run in self.stub.ListRuns(pb.ListRunsRequest()).runs]
        for plugin in self.stub.ListPlugins(pb.ListPluginsRequest()).plugins:
            for first in range(0, len(runs), RUNS):
                for answer in self.read(plugin.name, runs=runs[first:first + RUNS]):
                    for tag in (tag for r in answer.runs for tag in r.tags):
                        series += 1
                        points += len(tag.data.step)
                        steps += sum(tag.data.step)
        return f"{series} series, {points} points, steps add up to {steps}"


def binary(name):
    return name or tensorboard_data_server.server_binary()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logdir")
    parser.add_argument("--server")
    parser.add_argument("-n", help="how much there is to read; the race says so")
    args = parser.parse_args()
    with Server(binary(args.server), args.logdir) as server:
        seconds = server.wait_until_loaded() - server.began
        cpu, peak = server.cost()
        asked = time.perf_counter()
        work = server.contents()
        metrics = {"max_rss_mib": peak, "read_seconds": time.perf_counter() - asked, "served_rss_mib": server.cost()[1]}
    with Server(binary(args.server), args.logdir) as server:
        metrics["first_seconds"] = server.first_values() - server.began
    print(json.dumps({"work": work, "seconds": seconds, "cpu_seconds": cpu, "metrics": metrics}))


if __name__ == "__main__":
    main()
