"""Drives Chromium without a window, over the DevTools protocol.

The protocol runs over two pipes (file descriptors 3 and 4 of the browser, messages end with a NUL byte): no port is
opened, no driver program and no Python package are needed.
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Nothing here but the page under test: no sandbox (the tests may run as root), no graphics card, no calls home.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--remote-debugging-pipe",
)

_READ_FD, _WRITE_FD = 3, 4  # fixed by --remote-debugging-pipe: the browser reads 3 and writes 4


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class ProtocolError(AssertionError):
    """The browser refused a call."""


class Browser:
    """One browser with one page; a context manager."""

    def __init__(self, executable, width=1400, height=900, timeout=90):
        self._executable = executable
        self._size = width, height
        self._timeout = timeout
        self._buffer = b""
        self._last_id = 0
        self._session = None

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._log = tempfile.TemporaryFile()
        self._start()
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            width, height = self._size
            self._call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        os.close(self._to)
        os.close(self._from)
        self._log.close()
        self._profile.cleanup()

    def open(self, url):
        self._call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression, what):
        """Polls the expression until it is true; returns its value."""
        deadline = time.monotonic() + self._timeout
        while not (value := self._evaluate_between_pages(expression)):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {self._timeout} s; the page says: {self.page_text()[:2000]!r}")
            time.sleep(0.2)
        return value

    def _evaluate_between_pages(self, expression):
        """As evaluate, but None while one page goes and the next comes."""
        with contextlib.suppress(ProtocolError):
            return self.evaluate(expression)

    def page_text(self):
        return self.evaluate("document.body ? document.body.innerText : ''") or ""

    def screenshot(self):
        """The visible part of the page as PNG bytes."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _start(self):
        browser_reads, self._to = os.pipe()
        self._from, browser_writes = os.pipe()
        # Copies above the numbers that the child will overwrite; the originals stay open until the child runs, so that
        # nothing else gets the numbers 3 and 4 meanwhile.
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (browser_reads, browser_writes)]

        def place():
            os.dup2(copies[0], _READ_FD)
            os.dup2(copies[1], _WRITE_FD)

        self._popen = subprocess.Popen(
            [self._executable, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=place,
            pass_fds=(_READ_FD, _WRITE_FD),
            start_new_session=True,
        )
        for fd in (browser_reads, browser_writes, *copies):
            os.close(fd)

    def _call(self, method, **params):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") != self._last_id:
                continue  # an event, which nobody asked for
            if "error" in answer:
                raise ProtocolError(f"{method}: {answer['error']}")
            return answer["result"]

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._from, 1 << 20) if ready else b""
            if not data:
                raise AssertionError(f"Chromium {'closed the pipe' if ready else 'does not answer'}:\n{self._tail()}")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _tail(self):
        self._log.seek(0)
        return self._log.read()[-4000:].decode(errors="replace")
