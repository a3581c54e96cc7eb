"""Starts a data server of TensorBoard, theirs or ours, and asks it over gRPC."""

import os
import pathlib
import subprocess
import tempfile
import time

import grpc
import tensorboard_data_server
from harness.commands import PATIENCE
from tensorboard.data.proto import data_provider_pb2 as pb
from tensorboard.data.proto import data_provider_pb2_grpc as pb_grpc

# Theirs keeps ten points of most plugins otherwise.
SAMPLES = ",".join(
    f"{plugin}=all"
    for plugin in ("scalars images histograms audio text mesh pr_curves hparams custom_scalars graphs mine"
                   " graph_run_metadata graph_run_metadata_graph graph_keras_model graph_tagged_run_metadata").split()
)
LOADED = "Finished load cycle"  # in the log of a server that has read everything once
KINDS = ("Scalars", "Tensors", "BlobSequences")


def theirs():
    return tensorboard_data_server.server_binary()


class DataServer:
    """One running server; a context manager. It is started as TensorBoard does it."""

    def __init__(self, binary, logdir, reload="once", args=(), files=None, timeout=PATIENCE):
        self._dir = tempfile.TemporaryDirectory(prefix="data-server-")
        self._port_file = pathlib.Path(self._dir.name, "port")
        self.error_file = pathlib.Path(self._dir.name, "error")
        self._log = pathlib.Path(self._dir.name, "log")
        self._args = [str(binary), f"--logdir={logdir}", f"--reload={reload}", f"--samples-per-plugin={SAMPLES}"]
        self._args += ["--port=0", f"--port-file={self._port_file}", "--die-after-stdin", f"--error-file={self.error_file}", "--verbose", *args]
        if files is not None:
            self._args = ["bash", "-c", f'ulimit -n {files} && exec "$@"', "bash", *self._args]
        self._timeout = timeout
        self.popen = None

    def __enter__(self):
        with open(self._log, "wb") as log:
            self.popen = subprocess.Popen(self._args, stdin=subprocess.PIPE, stderr=log, env={**os.environ, "no_proxy": "localhost"})
        deadline = time.monotonic() + self._timeout
        while not (self._port_file.exists() and self._port_file.read_text().endswith("\n")):
            assert self.popen.poll() is None, f"ended with {self.popen.returncode}: {self.log}"
            assert time.monotonic() < deadline, "no port"
            time.sleep(0.01)
        options = [("grpc.max_receive_message_length", 256 << 20), ("grpc.enable_http_proxy", 0)]
        self._channel = grpc.insecure_channel(f"localhost:{int(self._port_file.read_text())}", options=options)
        self.stub = pb_grpc.TensorBoardDataProviderStub(self._channel)
        return self

    def __exit__(self, *_):
        self._channel.close()
        self.popen.stdin.close()  # what TensorBoard leaves behind when it ends
        try:
            self.popen.wait(timeout=PATIENCE)
        finally:
            self.popen.kill()
            self._dir.cleanup()

    @property
    def log(self):
        return self._log.read_text(errors="replace")

    def wait_until_loaded(self):
        """Waits until a server has read everything once."""
        self.wait_for(lambda _: LOADED in self.log)

    def plugins(self):
        return {p.name for p in self.stub.ListPlugins(pb.ListPluginsRequest()).plugins}

    def runs(self):
        return {r.name: r.start_time for r in self.stub.ListRuns(pb.ListRunsRequest()).runs}

    def list(self, kind, plugin, **filters):
        """{(run, tag): metadata}"""
        request = getattr(pb, f"List{kind}Request")(plugin_filter=pb.PluginFilter(plugin_name=plugin), **filters)
        answer = getattr(self.stub, f"List{kind}")(request)
        return {(r.run_name, t.tag_name): t.metadata for r in answer.runs for t in r.tags}

    def read(self, kind, plugin, points=1_000_000, **filters):
        """{(run, tag): data}"""
        request = getattr(pb, f"Read{kind}Request")(plugin_filter=pb.PluginFilter(plugin_name=plugin), **filters)
        request.downsample.num_points = points
        answer = getattr(self.stub, f"Read{kind}")(request)
        return {(r.run_name, t.tag_name): t.data for r in answer.runs for t in r.tags}

    def blob(self, key):
        return b"".join(part.data for part in self.stub.ReadBlob(pb.ReadBlobRequest(blob_key=key)))

    def wait_for(self, what, seconds=PATIENCE):
        """Waits until what(self) is true."""
        deadline = time.monotonic() + seconds
        while not what(self):
            assert time.monotonic() < deadline, "the server does not show it"
            time.sleep(0.05)
