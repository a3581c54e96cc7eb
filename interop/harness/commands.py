"""Runs the built commands, captures what they say, and kills them when a test asks for it.

The commands are found in the folder that TRAINERD_BIN_DIR names. Every process is started in a process group of its
own, so that stopping one also stops whatever it started.
"""

import contextlib
import dataclasses
import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
DIGITS_CONFIG = REPO / "examples" / "digits" / "digits.toml"

PATIENCE = 240  # seconds for what takes moments on a machine that has nothing else to do

# Words that a Go program prints only when it crashed.
CRASH_MARKS = ("panic:", "goroutine ", "runtime error", "SIGSEGV", "fatal error:")


@dataclasses.dataclass(frozen=True)
class Result:
    """A finished command. A negative code is the signal that ended it, as in subprocess."""

    args: tuple
    code: int
    out: str
    err: str
    seconds: float

    @property
    def text(self):
        return self.out + self.err

    def __str__(self):
        return (
            f"$ {' '.join(self.args)}\nexit code {self.code} after {self.seconds:.1f} s\n"
            f"--- stdout\n{self.out}\n--- stderr\n{self.err}"
        )


class Process:
    """A running command whose output goes to files, so that it never blocks on a full pipe."""

    def __init__(self, args, workdir, env=None, stdin=""):
        self.args = tuple(str(a) for a in args)
        workdir.mkdir(parents=True, exist_ok=True)
        number = len(list(workdir.glob("*.out")))
        self._out = workdir / f"{number:03}.out"
        self._err = workdir / f"{number:03}.err"
        self._started = time.monotonic()
        with open(self._out, "wb") as out, open(self._err, "wb") as err, tempfile.TemporaryFile() as words:
            words.write(stdin.encode() if isinstance(stdin, str) else stdin)
            words.seek(0)
            self._popen = subprocess.Popen(
                self.args,
                stdin=words,
                stdout=out,
                stderr=err,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self):
        return self._popen.pid

    @property
    def running(self):
        return self._popen.poll() is None

    @property
    def text(self):
        return self._read(self._out) + self._read(self._err)

    def signal(self, number):
        """Sends a signal to the process and to what it started; a process that has ended is left alone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def kill(self):
        """kill -9, and waits until the process is gone."""
        self.signal(signal.SIGKILL)
        return self.wait()

    def wait(self, timeout=PATIENCE):
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._popen.wait()
            raise AssertionError(f"still running after {timeout} s, killed:\n{self.result(-signal.SIGKILL)}") from None
        return self.result(code)

    def wait_until(self, condition, what, timeout=PATIENCE, poll=0.005):
        """Polls condition() while the process runs; fails when it ends or the time is over before that."""
        deadline = time.monotonic() + timeout
        while not condition():
            if not self.running:
                if condition():
                    return
                raise AssertionError(f"ended before {what}:\n{self.wait()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {timeout} s:\n{self.kill()}")
            time.sleep(poll)

    def result(self, code):
        seconds = time.monotonic() - self._started
        return Result(self.args, code, self._read(self._out), self._read(self._err), seconds)

    @staticmethod
    def _read(path):
        return path.read_text(encoding="utf-8", errors="replace")


class Commands:
    """The built commands of this project."""

    def __init__(self, bin_dir, workdir):
        self._bin = pathlib.Path(bin_dir)
        self._workdir = workdir

    def start(self, *args, env=None, stdin=""):
        name, *rest = args
        return Process([self._bin / name, *rest], self._workdir, env, stdin)

    def run(self, *args, timeout=PATIENCE, env=None, stdin=""):
        return self.start(*args, env=env, stdin=stdin).wait(timeout)

    def train_on_terminal(self, logdir, config=DIGITS_CONFIG, **settings):
        name, *rest = training_args(logdir, config, settings)
        return on_terminal([self._bin / name, *rest])

    def start_training(self, logdir, config=DIGITS_CONFIG, **settings):
        return self.start(*training_args(logdir, config, settings))

    def train(self, logdir, config=DIGITS_CONFIG, timeout=PATIENCE, **settings):
        return self.start_training(logdir, config, **settings).wait(timeout)


def on_terminal(args, env=None):
    """Runs a command on a terminal of its own; returns its exit code and all that the terminal was sent."""
    ours, its = pty.openpty()
    try:
        popen = subprocess.Popen(
            [str(a) for a in args],
            stdin=its,
            stdout=its,
            stderr=its,
            env={**os.environ, "TERM": "xterm", **(env or {})},
            start_new_session=True,
        )
    finally:
        os.close(its)
    shown = b""
    # Reading fails once the last process that had the terminal open is gone.
    with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
        while part := terminal.read(1 << 16):
            shown += part
    return popen.wait(60), shown.decode("utf-8", errors="replace")


def training_args(logdir, config, settings):
    """The words of a `trainerd run`; a setting data__file=X becomes --set data.file=X."""
    args = ["trainerd", "run", str(config), "--logdir", str(logdir)]
    for key, value in settings.items():
        args += ["--set", f"{key.replace('__', '.')}={value}"]
    return args


def assert_success(result):
    assert result.code == 0, f"expected exit code 0:\n{result}"
    assert_no_crash(result)
    return result


def assert_no_crash(result):
    found = [mark for mark in CRASH_MARKS if mark in result.text]
    assert not found, f"the command crashed ({found}):\n{result}"
