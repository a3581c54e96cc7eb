"""A TensorFlow cluster on loopback ports: parameter servers and workers, each a tf.distribute.Server in a process of its
own. Run as a program, it serves until it is interrupted."""

import argparse
import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Imports TensorFlow, which takes the time, and serves until whoever started it is gone.
SERVER = """
import json, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
import tensorflow as tf
spec, job, task = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
server = tf.distribute.Server(spec, job_name=job, task_index=task, config=config)
print("serving", flush=True)
server.join()
"""


def free_ports(n):
    """n ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Cluster:
    """Use as a context manager; every server ends with it."""

    def __init__(self, logs, ps=1, workers=2):
        self._logs = pathlib.Path(logs)
        ports = free_ports(ps + workers)
        address = [f"127.0.0.1:{port}" for port in ports]
        self.spec = {"ps": address[:ps], "worker": address[ps:]} if ps else {"worker": address}
        self._processes = {}

    def __enter__(self):
        try:
            for job, addresses in self.spec.items():
                for task in range(len(addresses)):
                    self._spawn(job, task)
            for job, task in self._processes:
                self._await(job, task)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for job, task in list(self._processes):
            self.kill(job, task)

    def target(self, task=0, job="worker"):
        return "grpc://" + self.spec[job][task]

    def start(self, job, task):
        self._spawn(job, task)
        self._await(job, task)

    def mend(self):
        """Starts again what has ended."""
        for job, addresses in self.spec.items():
            for task in range(len(addresses)):
                process = self._processes.get((job, task))
                if process and process.poll() is None:
                    continue
                if process:
                    self.kill(job, task)
                self.start(job, task)

    def kill(self, job, task):
        process = self._processes.pop((job, task))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def signal(self, job, task, number):
        os.kill(self._processes[job, task].pid, number)

    def log(self, job, task):
        return (self._logs / f"{job}{task}.log").read_text(errors="replace")

    def _spawn(self, job, task):
        with open(self._logs / f"{job}{task}.log", "ab") as log:
            self._processes[job, task] = subprocess.Popen(
                [sys.executable, "-c", SERVER, json.dumps(self.spec), job, str(task)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "1", "CUDA_VISIBLE_DEVICES": ""})

    def _await(self, job, task, patience=90):
        process = self._processes[job, task]
        ready, _, _ = select.select([process.stdout], [], [], patience)
        if not ready or process.stdout.readline() != b"serving\n":
            raise RuntimeError(f"/job:{job}/task:{task} does not serve:\n{self.log(job, task)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ps", type=int, default=1, help="parameter servers (default 1)")
    parser.add_argument("--workers", type=int, default=2, help="workers (default 2)")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as logs, Cluster(logs, args.ps, args.workers) as cluster:
        for job, addresses in cluster.spec.items():
            for task in range(len(addresses)):
                print(f"/job:{job}/task:{task}  {cluster.target(task, job)}", flush=True)
        print("press Ctrl-C to end the servers", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
