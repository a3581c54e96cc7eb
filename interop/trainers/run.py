"""Kills real trainers again and again under trainerd, and says what became of them: `make trainers`.

Each trainer runs once undisturbed, then is killed with SIGKILL at random moments: every other time while it writes a
file, else within a step, just after trainerd has announced a save, or while it starts. It must come to its end with exit
code 0, nothing but the kills may have failed a start, no start may have been given a damaged checkpoint, each the newest
one announced, which must not be deleted, both loaders of TensorBoard must show one rising curve, and where the trainer
repeats itself to the bit, the end must have the same bits.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.tensorboard import LOADERS, TensorBoard  # noqa: E402
from record import SAVE, SAVED, START, STEP, Record  # noqa: E402

# Name, script, modules that it needs, where they are, recipe, checkpoints, tag of the curve, steps.
TRAINERS = [
    ("PyTorch", "torch_plain.py", ["torch"], "private", "plain", "ckpt-*.pt", "loss", 150),
    ("PyTorch, saves while it trains", "torch_async.py", ["torch"], "private", "plain", "step_*", "loss", 150),
    ("transformers", "transformers_trainer.py", ["transformers", "torch", "accelerate"], "private", "transformers", "checkpoint-*", "loss", 150),
    ("Lightning", "lightning_fit.py", ["lightning", "torch"], "private", "lightning", "*.ckpt", "train_loss", 150),
    ("torchrun, 2 workers", "torchrun_workers.py", ["torch"], "private", "nanogpt", "ckpt-*.pt", "loss", 150),
    ("Keras", "keras_fit.py", ["keras", "tensorflow"], "own", "keras", "ckpt-*.keras", "loss", 100),
    ("JAX, orbax", "jax_orbax.py", ["jax", "optax", "orbax-checkpoint"], "private", "jax", "checkpoints/*", "loss", 150),
    ("XGBoost", "xgboost_rounds.py", ["xgboost"], "private", "xgboost", "model-*.json", "train-rmse", 150),
    ("LightGBM", "lightgbm_rounds.py", ["lightgbm"], "private", "xgboost", "model-*.txt", "train/l2", 150),
    ("NumPy", "numpy_npz.py", ["numpy"], "own", "plain", "state-*.npz", "loss", 300),
    ("TF 1 Supervisor", "tf1_supervisor.py", ["tensorflow"], "own", "tf1", "model.ckpt-*", "loss", 150),
]

STEPS_PER_KILL = 10  # at least, so that the training does not end before its kills are done
LAST_STEPS = 30  # without a kill: each may wait for a save

# Prints the versions of packages, by the name of any of their distributions.
VERSIONS = """
import importlib.metadata as metadata, sys
for name in sys.argv[1:]:
    for distribution in (name, name + "-cpu"):
        try:
            print(name, metadata.version(distribution), end=" ")
            break
        except metadata.PackageNotFoundError:
            pass
    else:
        sys.exit(f"{name} is not installed")
"""


class Run:
    """A run under trainerd, whose log is read while it comes."""

    def __init__(self, options, trainer, logdir):
        name, script, _, where, recipe, pattern, _, steps = trainer
        python = sys.executable if where == "own" else options.python
        words = [python, str(HERE / script)]
        if "torchrun" in script:
            words = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(HERE / script)]
        settings = [
            f"train.steps={steps}", f"child.recipe={recipe}", f"child.checkpoints={pattern}", "child.backoff_secs=0.01", "child.max_backoff_secs=0.1",
            "child.max_restarts=1000",
        ]
        command = [options.trainerd, "run", "--logdir", str(logdir)]
        for setting in settings:
            command += ["--set", setting]
        env = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TMPDIR": options.temporary}
        self.logdir, self.text, self.pid, self.trains, self.begun = logdir, "", 0, False, time.time()
        self.popen = subprocess.Popen(command + ["--"] + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, text=True, errors="replace")
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.text += line
            if found := re.search(r"msg=started pid=(\d+)", line):
                self.pid, self.trains = int(found.group(1)), False
            elif "msg=training step=" in line:
                self.trains = True

    def alive(self):
        return self.popen.poll() is None

    def step(self):
        """The step of the newest line of progress, by the control socket."""
        connection = http.client.HTTPConnection("trainerd")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(self.logdir / "trainerd.sock"))
            connection.request("GET", "/v1/status")
            return json.load(connection.getresponse()).get("step", 0)
        except (OSError, http.client.HTTPException):
            return 0  # trainerd has ended
        finally:
            connection.close()

    def wait(self):
        self.popen.wait()
        self.reader.join()
        return self.popen.returncode


def changes(*folders):
    """What is below folders, but for trainerd's own files."""
    names = set()
    for top in folders:
        for folder, below, files in os.walk(top):
            below[:] = [name for name in below if not name.startswith("trainerd.")]
            names |= {os.path.join(folder, f) for f in files if "tfevents" not in f and not f.startswith("trainerd.")}
    return names


def wait_for(run, moment):
    """Waits until the current start trains, at a step or later: a kill of a program that is still importing its packages says little."""
    while run.alive() and (run.pid == 0 or not run.trains):
        time.sleep(0.05)
    while run.alive() and run.trains and run.step() < moment:
        time.sleep(0.2)


def aim(i):
    """The kind of moment for the kill with number i."""
    return SAVE if i % 2 else START if i % 10 == 8 else SAVED if i % 4 == 2 else STEP


def wait_for_moment(run, kind, step, options, chance):
    """Waits until a moment of that kind, at a step or later, and a random time more."""
    if kind == START:
        time.sleep(chance.random() * 5)
        return
    wait_for(run, step)
    limit = time.time() + 120
    if kind == SAVE:
        before = changes(run.logdir, options.temporary)
        while run.alive() and time.time() < limit and changes(run.logdir, options.temporary) <= before:
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.004)
    elif kind == SAVED:
        before = run.text.count("msg=saved")
        while run.alive() and time.time() < limit and run.text.count("msg=saved") <= before:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
    else:
        time.sleep(chance.random() * 0.1)


def below(pid):
    """The processes below a process, as the ranks of a launcher, which are in sessions of their own."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found = [pid]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def kill(pid):
    """Kills a program at once, with all that it has started."""
    others = below(pid)
    os.killpg(pid, signal.SIGKILL)
    for other in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(other, signal.SIGKILL)


def kill_at_random(run, options, steps, chance):
    """Kills the program so often, at rising steps, and returns the record of it."""
    record = Record()
    steps = sorted(chance.randrange(2, steps - LAST_STEPS) for _ in range(options.kills))
    for i, step in enumerate(steps):
        if time.time() - run.begun > options.limit:
            break
        wait_for_moment(run, aim(i), step, options, chance)
        if not run.alive():
            break
        pid = run.pid
        try:
            kill(pid)
        except ProcessLookupError:
            break
        kind = aim(i) if run.trains else START
        record.killed(STEP if kind == START and run.trains else kind, run.text)
        while run.alive() and run.pid == pid:
            time.sleep(0.02)
    return record


def curve_rises(logdir, tag):
    """Whether both loaders of TensorBoard show a curve that rises step by step."""
    for loader in LOADERS:
        with TensorBoard(logdir, loader) as board:
            for run in board.runs():
                for name in board.scalar_tags().get(run, []):
                    steps = [point[0] for point in board.scalars(run, name)]
                    if steps != sorted(set(steps)):
                        return f"{loader} shows {name} of {run} out of order"
            tags = [t for r in board.runs() for t in board.scalar_tags().get(r, [])]
            if tag not in tags:
                return f"{loader} does not show {tag}, but {tags}"
    return ""


def undisturbed_end(options, trainer, logdir):
    """What a trainer ends with when nothing kills it; otherwise the problem."""
    run = Run(options, trainer, logdir)
    if run.wait():
        return "", "FAILED undisturbed:\n" + run.text[-2000:]
    return (logdir / "final.txt").read_text(), ""


def prove(options, trainer, scratch):
    """Runs one trainer, and returns a row of the table."""
    steps = max(trainer[-1], STEPS_PER_KILL * options.kills)  # every other kill waits for the next save
    trainer = (*trainer[:-1], steps)
    name, script, modules, where, _, _, tag, _ = trainer
    python = sys.executable if where == "own" else options.python
    found = subprocess.run([python, "-c", VERSIONS, *modules], capture_output=True, text=True)
    if found.returncode:
        return name, "", "left out: " + found.stderr.strip().splitlines()[-1], False
    versions = found.stdout.strip()
    undisturbed, problem = undisturbed_end(options, trainer, scratch / (script + "-undisturbed"))
    if problem:
        return name, versions, problem, False
    logdir, problems = scratch / (script + "-killed"), []
    run = Run(options, trainer, logdir)
    record = kill_at_random(run, options, steps, random.Random(options.seed))
    code = run.wait()
    if options.keep:
        (scratch / (script + ".log")).write_text(run.text)
    if code:
        return name, versions, f"FAILED after {record.kills()} kills:\n" + run.text[-2000:], False
    failures = len(re.findall(r"it will be started again", run.text))
    if failures != record.kills():
        problems.append(f"{failures} starts failed, but {record.kills()} were killed")
    problems += record.problems(run.text)
    if problem := curve_rises(logdir, tag):
        problems.append(problem)
    bits = "the same bits"
    if (logdir / "final.txt").read_text() != undisturbed:
        again, problem = undisturbed_end(options, trainer, scratch / (script + "-again"))
        bits = problem or ("does not repeat itself undisturbed" if again != undisturbed else "OTHER BITS")
    damaged = len(re.findall(r"moved damaged checkpoint aside", run.text))
    text = f"{record.text(run.text)}; {damaged} damaged checkpoints moved; {bits}"
    return name, versions, "; ".join([text, *problems]), not problems and bits in ("the same bits", "does not repeat itself undisturbed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainerd", required=True)
    parser.add_argument("--python", required=True, help="of the environment with requirements.txt")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which a trainer is not killed any more")
    parser.add_argument("--keep", help="a folder for the logdirs")
    parser.add_argument("names", nargs="*", help="scripts to run; default: all")
    options = parser.parse_args()
    scratch = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="trainers-"))
    scratch.mkdir(exist_ok=True)
    # Lightning's files come from here: from another file system they are copied, not renamed, so that a kill can cut them short.
    options.temporary = tempfile.mkdtemp(prefix="trainers-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    fine = True
    for trainer in TRAINERS:
        if options.names and trainer[1] not in options.names:
            continue
        name, versions, text, ok = prove(options, trainer, scratch)
        print(f"| {name} | {versions} | {text} |", flush=True)
        fine = fine and ok
    shutil.rmtree(options.temporary)
    if not options.keep:
        shutil.rmtree(scratch)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
