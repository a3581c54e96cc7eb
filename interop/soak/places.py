"""Where a round happens: a folder of its own with the job, and all that may be left over there when it has ended."""

import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness.commands import Commands

MARK = "TRAINERD_SOAK"  # the variable by which a process of a round is known
KILLED_SOCKET = re.compile(r"tmp/trainerd-\d+(/reports)?$")  # which a start a minute later removes
DISK = "24m"  # of the rounds whose disk fills up

_MOUNT = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs"]


class Worlds:
    """What writes the jobs, and counts what happens to them."""

    def __init__(self, bins):
        self.bins = bins
        self.blows = collections.Counter()
        self.checkpoints = 0

    def write(self, folder, seed, kind):
        """Writes the job of a seed, and returns what has to be known of it."""
        words = [self.bins / "world.test", "-test.run=^TestWriteJob$", f"-write={folder}", f"-seed={seed}", f"-kind={kind}"]
        sources = pathlib.Path(__file__).resolve().parents[2] / "trainerd" / "world"
        done = subprocess.run(words, cwd=sources, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((folder / "about.json").read_text())

    def summary(self):
        blows = ", ".join(f"{count} {name}" for name, count in sorted(self.blows.items()))
        return f"{self.checkpoints} checkpoints loaded by TensorFlow; blows: {blows or 'none'}"


class Place:
    """A round's folder; a context manager that fails at its end if anything is left that should not be."""

    def __init__(self, worlds, folder, seed, kind):
        self.worlds, self.folder, self.seed, self.kind = worlds, folder, seed, kind
        self.about, self.blows = {}, []
        self.mark = f"{os.getpid()}-{seed}"
        self.disk = folder / "disk"
        self.logdir = self.disk / "logdir"
        self._mounted = False

    def __str__(self):
        return f"seed {self.seed}, {self.kind} ({self.about.get('kind')}); {', '.join(self.blows) or 'no blow'}"

    def __enter__(self):
        for name in ("job", "tmp", "home", "disk"):
            (self.folder / name).mkdir()
        os.environ |= {"TMPDIR": str(self.folder / "tmp"), "HOME": str(self.folder / "home"), MARK: self.mark}
        os.environ["KERAS_HOME"] = str(self.folder / "keras")  # of TensorFlow's servers
        self.about = self.worlds.write(self.folder / "job", self.seed, self.kind)
        self.commands = Commands(self.worlds.bins, self.folder / "logs")
        self._before = self._names()
        return self

    def __exit__(self, kind, *_):
        alive = self._end_processes()
        names = {name for name in self._names() if not KILLED_SOCKET.match(name)}
        for name in (MARK, "TMPDIR", "HOME"):
            os.environ.pop(name)
        if self._mounted:
            self._unmount(kind is not None)
        if kind is None:
            assert not alive, f"processes are left: {alive}"
            assert names == self._before, f"files outside the logdir: {sorted(names ^ self._before)}"

    def limit_disk(self):
        """Has the logdir on a disk of its own that can be filled. Reports whether it could; only root can."""
        self._mounted = os.geteuid() == 0 and subprocess.run([*_MOUNT, self.disk], check=False).returncode == 0
        return self._mounted

    @contextlib.contextmanager
    def full_disk(self):
        """Nothing can be written meanwhile."""
        filler = self.disk / "filler"
        try:
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))
            yield
        finally:
            filler.unlink()

    def suffer(self, blow):
        self.blows.append(blow)
        self.worlds.blows[blow.split()[0]] += 1

    def _names(self):
        """All names but those of the logdir, of its disk, and of what the processes print."""
        names = set()
        for top in ("job", "tmp", "home", "disk"):
            for path, folders, files in os.walk(self.folder / top):
                if pathlib.Path(path) == self.disk and "logdir" in folders:
                    folders.remove("logdir")
                names |= {os.path.relpath(os.path.join(path, name), self.folder) for name in (*folders, *files)}
        return names

    def _end_processes(self):
        """Ends the processes of the round that are alive; returns their command lines."""
        deadline = time.monotonic() + 10
        while (alive := dict(self._processes())) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return list(alive.values())

    def _processes(self):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(entry.name) != os.getpid() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")

    def _unmount(self, keep):
        if keep:
            subprocess.run(["cp", "-a", self.disk, self.folder / "disk-kept"], check=False)
        subprocess.run(["umount", "-l", self.disk], check=False)
