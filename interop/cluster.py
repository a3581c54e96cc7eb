"""A TensorFlow cluster on loopback ports: parameter servers and workers, each a tf.distribute.Server in a process of its
own. Run as a program, it trains a job on them, or serves until it is interrupted."""

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
import threading
import time

# Imports TensorFlow, which takes the time, and serves as it is told to until the process that started it is gone.
SERVER = """
import json, os, sys, threading
import tensorflow as tf
role = sys.stdin.readline() or os._exit(0)
spec, job, task = json.loads(role)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
server = tf.distribute.Server(spec, job_name=job, task_index=task, config=config)
print("serving", flush=True)
server.join()
"""


def say(text):
    """Prints a line in one piece: several threads do, and print writes its end apart."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def free_ports(n):
    """n ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Cluster:
    """Use as a context manager; every server ends with it. With spare=True a process stands by that is quick to take the
    place of one that was killed."""

    def __init__(self, logs, ps=1, workers=2, spare=False):
        self._logs = pathlib.Path(logs)
        ports = free_ports(ps + workers)
        address = [f"127.0.0.1:{port}" for port in ports]
        self.spec = {"ps": address[:ps], "worker": address[ps:]} if ps else {"worker": address}
        self._processes = {}
        self._spare = None
        self._spares = spare

    def __enter__(self):
        try:
            for job, addresses in self.spec.items():
                for task in range(len(addresses)):
                    self._spawn(job, task)
            if self._spares:
                self._spare = self._warm()
            for job, task in self._processes:
                self._await(job, task)
        except BaseException:
            self.rest()
            raise
        return self

    def __exit__(self, *_):
        self.rest()

    def rest(self):
        """Ends all servers; mend starts them again."""
        for job, task in list(self._processes):
            self.kill(job, task)
        if self._spare:
            self._end(self._spare)
            self._spare = None

    def processes(self):
        return self._processes.items()

    def target(self, task=0, job="worker"):
        return "grpc://" + self.spec[job][task]

    def start(self, job, task):
        self._spawn(job, task)
        self._await(job, task)
        if self._spares:
            self._spare = self._warm()

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

    def reset(self):
        """Ends all sessions, and forgets their variables: servers keep these by name, for all users."""
        import tensorflow as tf  # the command of `make cluster` does without
        tf.compat.v1.Session.reset(self.target())

    def kill(self, job, task):
        self._end(self._processes.pop((job, task)))

    @staticmethod
    def _end(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def signal(self, job, task, number):
        os.kill(self._processes[job, task].pid, number)

    @property
    def _log(self):
        return self._logs / "servers.log"

    def _warm(self):
        with open(self._log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "1", "CUDA_VISIBLE_DEVICES": ""})

    def _spawn(self, job, task):
        process, self._spare = self._spare or self._warm(), None
        self._processes[job, task] = process
        process.stdin.write(json.dumps([self.spec, job, task]).encode() + b"\n")
        process.stdin.flush()

    def _await(self, job, task, patience=300):
        process = self._processes[job, task]
        ready, _, _ = select.select([process.stdout], [], [], patience)
        if not ready or process.stdout.readline() != b"serving\n":
            raise RuntimeError(f"/job:{job}/task:{task} does not serve:\n{self._log.read_text(errors='replace')}")


class Replicas:
    """The processes of a job, one for each worker of a cluster; the first is the chief. What they say is printed."""

    def __init__(self, cluster, command, settings):
        self._threads, self.processes = [], {}
        workers, ps = len(cluster.spec["worker"]), len(cluster.spec.get("ps", ()))
        for task in range(workers):
            own = [f"master={cluster.target(task)}", f"cluster.ps_tasks={ps}", f"cluster.workers={workers}", f"cluster.task={task}",
                   f"supervisor.is_chief={str(task == 0).lower()}", "supervisor.recovery_wait_secs=2", *settings]
            process = subprocess.Popen([*command, *(word for setting in own for word in ("--set", setting))], text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            name = f"worker {task}" if task else "chief"
            self.processes[name] = process
            self._threads.append(threading.Thread(target=self._show, args=(name, process.stdout)))
            self._threads[-1].start()

    @staticmethod
    def _show(name, lines):
        for line in lines:
            say(f"{name:8} | {line.rstrip()}")

    def wait(self):
        """Returns 0 when all of them did well."""
        return max(abs(process.wait()) for process in self.processes.values())

    def stop(self, grace=180):
        """Lets them save and end; kills those that take too long, or when somebody presses Ctrl-C again."""
        for process in self.processes.values():
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + grace
        try:
            for process in self.processes.values():
                process.wait(max(0, deadline - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            pass
        for process in self.processes.values():
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join()


def train(cluster, args):
    """Runs a job on the cluster until it is complete or somebody presses Ctrl-C."""
    replicas = Replicas(cluster, [args.trainerd, "run", args.job, "--logdir", args.logdir], args.set)
    try:
        for name, process in replicas.processes.items():
            say(f"{name:8} | process {process.pid}")
        say(f"""
The chief writes {args.logdir}. To look at it, type in another terminal:
  tensorboard --logdir {args.logdir}
  {pathlib.Path(args.trainerd).parent}/tfevents plot {args.logdir} --tag loss
To see what happens, kill any of the processes above with kill -9. Ctrl-C stops all; started again, the job continues.
""")
        return replicas.wait()
    except KeyboardInterrupt:
        say("stopping: the chief saves")
        return 0
    finally:
        replicas.stop()


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", nargs="?", help="config of a job to train on the cluster; without it there are only the servers")
    parser.add_argument("--trainerd", default="bin/trainerd", help="the command (default bin/trainerd)")
    parser.add_argument("--logdir", help="of the job (default logs/cluster-NAME, after the config)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job, such as cluster.sync=true")
    parser.add_argument("--ps", type=int, default=1, help="parameter servers (default 1)")
    parser.add_argument("--workers", type=int, default=2, help="workers (default 2)")
    args = parser.parse_args()
    if args.job and not args.logdir:
        args.logdir = f"logs/cluster-{pathlib.Path(args.job).stem}"
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT is ignored in what a shell starts in the background
        signal.signal(number, interrupt)
    try:
        with tempfile.TemporaryDirectory() as logs:
            print("starting TensorFlow's servers", flush=True)
            with Cluster(logs, args.ps, args.workers) as cluster:
                for (job, task), process in cluster.processes():
                    say(f"/job:{job}/task:{task}  {cluster.target(task, job)}  process {process.pid}")
                if args.job:
                    return train(cluster, args)
                print("press Ctrl-C to end the servers", flush=True)
                while True:
                    time.sleep(3600)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
