"""`ckpt browse` in a terminal of its own."""

import os
import pty
import re
import select
import subprocess
import time

import numpy as np
import pytest

safe = pytest.importorskip("safetensors.numpy")


class Terminal:
    def __init__(self, *command):
        self.master, slave = pty.openpty()
        env = dict(os.environ, TERM="xterm-256color", COLUMNS="100", LINES="30")
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        self.seen = ""

    def until(self, text, seconds=60):
        """Reads until text is shown."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"no {text!r} in {self.seen!r}"
            if select.select([self.master], [], [], 1)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    data = b""
                assert data, f"ended without {text!r}: {self.seen!r}"
                self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))

    def press(self, keys):
        self.seen = ""
        os.write(self.master, keys.encode())


def test_browse(bin_dir, tmp_path):
    safe.save_file({"net.layer.kernel": np.arange(100, dtype="f4"), "net.layer.bias": np.zeros(3, "f4")}, tmp_path / "x.safetensors")
    t = Terminal(bin_dir / "ckpt", "browse", tmp_path / "x.safetensors")
    try:
        t.until("2 tensors, 412 B")
        t.press("/")
        t.until("/_")
        t.press("kern")
        t.until("kernel")
        t.press("\r\x1b[B\x1b[B\r")
        t.until("100 numbers, 1 zeros")
        t.press("q")
        assert t.process.wait(60) == 0
    finally:
        t.process.kill()
        t.process.wait()
        os.close(t.master)


def test_without_a_terminal(bin_dir, tmp_path):
    safe.save_file({"x": np.zeros(3, "f4")}, tmp_path / "x.safetensors")
    done = subprocess.run([bin_dir / "ckpt", "browse", tmp_path / "x.safetensors"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2 and "needs a terminal" in done.stderr
