"""Kills and freezes the parts of a training on a cluster, and judges from the logs what became of it.

What happens follows from a seed, so that a failure can be played again.
"""

import contextlib
import dataclasses
import datetime
import json
import random
import re
import signal
import time

from harness.commands import DIGITS_CONFIG, assert_no_crash
from harness.logdirs import announced_steps

CHIEF, WORKER = ("trainerd", 0), ("trainerd", 1)
DEEDS = ("kill", "freeze")

MAX_SILENCE = 30  # seconds without a line in a log
SAVE_STEPS = 25

_LINE = re.compile(r"^time=(\S+) level=\w+ msg=(.*)$", re.MULTILINE)
_STEP = re.compile(r"\bstep=(\d+)")


@dataclasses.dataclass
class Life:
    """One process of trainerd for a task, from its start to its end."""

    task: int
    process: object
    began: float
    ended: float | None = None
    frozen: list = dataclasses.field(default_factory=list)  # (from, to)

    def lines(self):
        """(time, text) of each line of the log."""
        return [(datetime.datetime.fromisoformat(when).timestamp(), text) for when, text in _LINE.findall(self.process.text)]

    def silences(self):
        """(seconds, after which line), without the time in which the process was frozen."""
        lines = self.lines()
        times = [self.began, *(when for when, _ in lines), self.ended or time.time()]
        texts = ["the start", *(text for _, text in lines)]
        for begin, end, text in zip(times, times[1:], texts):
            frozen = sum(max(0, min(end, to) - max(begin, since)) for since, to in self.frozen)
            yield end - begin - frozen, text


@dataclasses.dataclass(frozen=True)
class Blow:
    """What is done to whom at the same time; the pause is how long they are away."""

    deed: str
    victims: tuple
    pause: float

    def __str__(self):
        return f"{self.deed} {', '.join(f'{job} {task}' for job, task in self.victims)} for {self.pause:.1f} s"


def choose(seed, blows, longest, victims):
    """The blows that follow from a seed, one victim at a time or two."""
    dice = random.Random(seed)
    return [Blow(dice.choice(DEEDS), tuple(dice.sample(victims, dice.choice((1, 1, 2)))), dice.uniform(0.1, longest))
            for _ in range(blows)]


class Nemesis:
    """A training on a cluster, and what is done to it."""

    def __init__(self, replica, cluster, commands, configs=None, **settings):
        """configs is the job of all, by default the digits, or a list: exported graphs, one for each worker."""
        self._replica, self._cluster, self._commands = replica, cluster, commands
        self._exported = isinstance(configs, list)
        workers = len(cluster.spec["worker"])
        self._configs = configs if self._exported else [configs or DIGITS_CONFIG] * workers
        self._settings = {"supervisor__save_model_steps": SAVE_STEPS} | settings
        self.lives, self._now = [], {}
        for task in range(workers):
            self._start(task)

    @property
    def victims(self):
        """Who can be hit: TensorFlow's servers, and the processes of trainerd by their task."""
        servers = [(job, task) for job, addresses in self._cluster.spec.items() for task in range(len(addresses))]
        return [*servers, *(("trainerd", task) for task in self._now)]

    def _start(self, task):
        began = time.time()
        self._now[task] = Life(task, self._replica(task, self._configs[task], **self._settings), began)
        self.lives.append(self._now[task])

    def announced(self):
        """The last step that a chief said it has saved; -1 for none."""
        return max((max(announced_steps(life.process), default=-1) for life in self.lives if life.task == 0), default=-1)

    def step(self, task):
        """The step that a process says it is at; -1 when it says none."""
        whom = ["--worker", str(task)] if task else []
        result = self._commands.run("trainerd", "status", "--json", *whom, self._replica.logdir)
        try:
            return json.loads(result.out).get("step", -1)
        except (ValueError, AttributeError):
            return -1

    def await_progress(self, beyond, timeout=180):
        """Waits until the chief has saved a later step, and all processes have come to one. Returns how long it took."""
        began = time.monotonic()
        for task, reached in ((0, lambda _: self.announced()), *((task, self.step) for task in self._now)):
            self._now[task].process.wait_until(lambda: reached(task) > beyond, f"step of task {task} after {beyond}", timeout, poll=0.05)
        return time.monotonic() - began

    def strike(self, blow):
        """Does it, lets the victims come back, and waits for the training to continue. Returns how long that took.

        A save that was under way, or a status that is a second old, may tell of later steps without that: two saves may not.
        """
        with contextlib.ExitStack() as back:
            for victim in blow.victims:
                back.callback(self._freeze(*victim) if blow.deed == "freeze" else self._kill(*victim))
            time.sleep(blow.pause)
        return self.await_progress(max(self.announced(), *map(self.step, self._now)) + 2 * SAVE_STEPS)

    def _freeze(self, job, task):
        if job != "trainerd":
            self._cluster.signal(job, task, signal.SIGSTOP)
            return lambda: self._cluster.signal(job, task, signal.SIGCONT)
        life, since = self._now[task], time.time()
        life.process.signal(signal.SIGSTOP)

        def thaw():
            life.frozen.append((since, time.time()))
            life.process.signal(signal.SIGCONT)
        return thaw

    def _kill(self, job, task):
        if job != "trainerd":
            self._cluster.kill(job, task)
            return lambda: self._cluster.start(job, task)
        self._now[task].process.kill()
        self._now[task].ended = time.time()
        return lambda: self._start(task)

    def end(self):
        """Stops the training, and fails if any rule was broken.

        A step of an exported graph waits on the servers for all workers: one that started after another worker stopped
        ends only with supervisor.stop_grace_secs, and this does not wait that long.
        """
        for life in self._now.values():
            life.process.signal(signal.SIGINT)
        for life in self._now.values():
            deadline = time.monotonic() + 10
            while self._exported and life.process.running and time.monotonic() < deadline:
                time.sleep(0.05)
            assert_no_crash(life.process.kill() if self._exported else life.process.wait())
            life.ended = time.time()
        self.judge()

    def judge(self):
        saved, at = -1, 0
        for when, task, text in sorted((when, life.task, text) for life in self.lives for when, text in life.lines()):
            step = int(found[1]) if (found := _STEP.search(text)) else -1
            if task == 0 and text.startswith("saved "):
                assert step >= saved, f"saved step {step} after step {saved}:\n{self.history()}"
                saved, at = step, when
            elif text.startswith('"restored;') and (when - at > 2 or "checkpoint=grpc:" not in text):  # others train a live model on
                assert step >= saved, f"began at step {step} after a save of {saved}:\n{self.history()}"
            elif text.startswith("training ") and when - at > 2:  # what is said of a step may come after the save of the next
                assert step >= saved, f"at step {step} after a save of {saved}:\n{self.history()}"
        for life in self.lives:
            for seconds, text in life.silences():
                assert seconds <= MAX_SILENCE, f"trainerd {life.task} was silent for {seconds:.0f} s after {text}:\n{self.history()}"

    def history(self):
        """What the processes have said last, in order."""
        said = sorted((when, life.task, text) for life in self.lives for when, text in life.lines())
        return "\n".join(f"{datetime.datetime.fromtimestamp(when):%H:%M:%S.%f} {task} {text}" for when, task, text in said[-300:])
