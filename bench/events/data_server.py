"""Lets TensorBoard's data server load a log directory, every point kept and
every checksum tested, and prints how long that took and what it holds."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
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


def load(binary, logdir, port_file):
    """Starts the server; returns it and the seconds until everything is loaded."""
    command = [binary, f"--logdir={logdir}", "--reload=once", "--port=0", f"--port-file={port_file}", "--checksum",
               "--samples-per-plugin=scalars=all,images=all,histograms=all", "--verbose", "--die-after-stdin"]
    begin = time.perf_counter()
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if LOADED in line:
            return server, time.perf_counter() - begin
    raise SystemExit(f"the data server ended with code {server.wait()}")


def cost(pid):
    """The CPU seconds and the largest memory, in MiB, of a process so far."""
    ticks = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    hertz = os.sysconf("SC_CLK_TCK")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(ticks[11]) + int(ticks[12])) / hertz, peak / 1024


def contents(port):
    """How many series and points the server holds, and the sum of their steps."""
    options = [("grpc.max_receive_message_length", -1)]
    stub = data_provider_pb2_grpc.TensorBoardDataProviderStub(grpc.insecure_channel(f"localhost:{port}", options=options))
    series = points = steps = 0
    everything = pb.Downsample(num_points=EVERYTHING)
    for plugin in stub.ListPlugins(pb.ListPluginsRequest()).plugins:
        for read, request in (
            (stub.ReadScalars, pb.ReadScalarsRequest),
            (stub.ReadTensors, pb.ReadTensorsRequest),
            (stub.ReadBlobSequences, pb.ReadBlobSequencesRequest),
        ):
            for run in stub.ListRuns(pb.ListRunsRequest()).runs:
                answer = read(request(plugin_filter=pb.PluginFilter(plugin_name=plugin.name), downsample=everything,
                                      run_tag_filter=pb.RunTagFilter(runs=pb.RunFilter(names=[run.name]))))
                for tag in (tag for r in answer.runs for tag in r.tags):
                    series += 1
                    points += len(tag.data.step)
                    steps += sum(tag.data.step)
    return f"{series} series, {points} points, steps add up to {steps}"


def main(logdir):
    with tempfile.TemporaryDirectory() as tmp:
        port_file = pathlib.Path(tmp, "port")
        server, seconds = load(tensorboard_data_server.server_binary(), logdir, port_file)
        try:
            cpu, peak = cost(server.pid)
            work = contents(int(port_file.read_text()))
        finally:
            server.stdin.close()
            server.wait()
    print(json.dumps({"work": work, "seconds": seconds, "cpu_seconds": cpu, "metrics": {"max_rss_mib": peak}}))


main(sys.argv[1])
