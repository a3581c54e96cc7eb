"""A job, or a program, that this machine trains: undisturbed, then under blows; both must end with the same."""

import contextlib
import os
import re
import shutil
import signal
import time
import tomllib

from harness import checkpoints
from harness.commands import PATIENCE, assert_no_crash, assert_success
from harness.nemesis import MAX_SILENCE, Life
from soak import judges

STARTED = re.compile(r"msg=started pid=(\d+)")
SAID = re.compile(r'\bmsg=saved .*?\bstep=(\d+)|msg="restored; training continues" step=(\d+)')
COMPLETE = "next:\n"  # in what a job prints that has come to its end


def train_here(place, dice):
    """Plays a round. Returns what came of it."""
    job = place.folder / "job"
    never = place.folder / "never"
    result = place.commands.train(never, job / "plain.toml", **_what_is_shown(job / "job.toml"))
    if "NaN" in result.text and result.code != 0:
        return "diverges when undisturbed; left out"
    assert_success(result)
    training = Training(place, dice, result.seconds)
    with judges.onlooker(place, dice) as shows:
        training.suffer()
        training.end()
        found = judges.curves(place.logdir, training.lossy)
        if not training.lossy:
            shows(found)
    training.judge(never, found)
    return f"{len(training.lives)} lives, step {training.announced()}"


def _what_is_shown(config):
    """The settings of a job by which it has points at some steps; none by the clock."""
    keys = _flat(tomllib.loads(config.read_text()))
    shown = ("supervisor.save_summaries_steps", "eval.steps", "train.eval_steps")
    return {"supervisor__save_summaries_secs": 0} | {key.replace(".", "__"): keys[key] for key in shown if key in keys}


def _flat(table, prefix=""):
    flat = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


class Training:
    """The lives of a job's trainerd in one logdir, and what happens in them."""

    def __init__(self, place, dice, takes):
        self.place, self.dice, self.takes = place, dice, takes
        self.lives, self.lossy, self.full = [], False, False
        self._forgotten = (0, 0)  # the life up to which, and how much of its log, what was announced counts no more
        self._stopping = False
        self._rival = False  # a second run was tried, which may have the logdir first: of a slow start, or one that was removed
        self.config = place.folder / "job" / "job.toml"
        self.blows = [self.kill, self.kill, self.freeze, self.terminate, self.kill_at_stop, self.stop, self.ask, self.ask, self.second_run, self.remove_lock,
                      self.remove_logdir, self.damage]
        if place.kind == "program":
            self.blows += [self.kill_program, self.kill_program, self.freeze_program]
        if dice.random() < 0.3 and place.limit_disk():
            self.blows += [self.fill_disk] * 4

    @property
    def process(self):
        return self.lives[-1].process

    def start(self):
        self._stopping = self._rival = False
        self.lives.append(Life(0, self.place.commands.start_training(self.place.logdir, self.config), time.time()))

    def said(self):
        """(announced step, resumed step) of the lines of all lives that count, one of the two being empty."""
        first, offset = self._forgotten
        for number, life in enumerate(self.lives[first:]):
            yield from SAID.findall(life.process.text[0 if number else offset:])

    def announced(self):
        return max((int(announced) for announced, _ in self.said() if announced), default=-1)

    def suffer(self):
        """Has some blows fall, at moments in which the training is likely to be alive."""
        self.start()
        blows = self.dice.randrange(1, 8)
        for _ in range(blows):
            time.sleep(self.dice.uniform(0, 1.5 * self.takes / blows))
            blow = self.dice.choice(self.blows)
            self.place.suffer(blow.__name__)
            blow()
            if not self.process.running:
                self.judge_life()
                self.start()

    def end(self):
        """Lets the training come to its end."""
        self.process.wait(PATIENCE)
        if COMPLETE not in self.judge_life().out:  # a stop, or a program that failed too often
            self.start()
            self.process.wait(PATIENCE)
            self.judge_life()
        result = assert_success(self.process.wait())
        assert COMPLETE in result.out, f"neither complete nor stopped:\n{result}"

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self):
        self._pause(self.process.pid)

    def kill_program(self):
        if pid := self._program():
            _send(pid, signal.SIGKILL)

    def freeze_program(self):
        if pid := self._program():
            self._pause(pid)

    def terminate(self):
        self._stopping = True
        _send(self.process.pid, self.dice.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)))
        self.process.wait(PATIENCE)

    def kill_at_stop(self):
        """Kills it in its last save, if that takes so long."""
        self._stopping = True
        _send(self.process.pid, signal.SIGTERM)
        time.sleep(self.dice.uniform(0, 0.2))
        self.kill()

    def stop(self):
        self._stopping = True
        self._command("stop")
        self.process.wait(PATIENCE)

    def ask(self):
        """Asks for something that must not matter."""
        what = self.dice.choice(("save", "note", "keep", "set", "pause", "status"))
        if what == "pause":
            self._command("pause")
            time.sleep(self.dice.uniform(0, 0.5))
        more = {"note": ["a note"], "keep": [str(self.announced())], "set": ["supervisor.save_model_secs=0.3"]}
        self._command("resume" if what == "pause" else what, *more.get(what, ()))

    def second_run(self):
        self._rival = True
        result = self.place.commands.train(self.place.logdir, self.config)
        if result.code != 75:  # the first had ended
            assert result.code == 0 and COMPLETE in result.out, f"a second run is not refused:\n{result}"

    def remove_lock(self):
        (self.place.logdir / "trainerd.lock").unlink(missing_ok=True)

    def remove_logdir(self):
        """Takes all away, and half of the times trainerd too, if a start has come so far."""
        if not self.place.logdir.exists():
            return
        self.lossy = True
        if self.dice.random() < 0.5:
            self.kill()
        doomed = self.place.disk / "logdir.gone"
        os.rename(self.place.logdir, doomed)
        while doomed.exists():  # the run may make another file in it before it has seen that it is gone
            shutil.rmtree(doomed, ignore_errors=True)
        self._forget()

    def damage(self):
        """Kills trainerd, and changes a byte of the newest checkpoint, if there is an older one."""
        self.kill()
        files = self._newest_files()
        if files and len({announced for announced, _ in self.said() if announced}) > 1:
            victim = self.dice.choice(files)
            text = bytearray(victim.read_bytes())
            text[self.dice.randrange(len(text))] ^= 1 << self.dice.randrange(8)
            other = victim.with_name(victim.name + ".other")  # a new file, since others may be links to the old one
            other.write_bytes(text)
            other.rename(victim)
            self._forget()

    def _newest_files(self):
        """The files of the newest checkpoint, if it was announced: of another, no program's damage is known."""
        step = self.announced()
        if self.place.kind == "job":
            files = [path for path in self.place.logdir.glob(f"*-{step}*") if path.suffix != ".json"]
        else:
            newest = max(self.place.logdir.glob(self.place.about.get("pattern") or "no checkpoint"), key=_step_of, default=None)
            files = _files(newest) if newest and _step_of(newest) == step else []
        return [path for path in sorted(files) if path.stat().st_size]

    def _forget(self):
        self._forgotten = (len(self.lives) - 1, len(self.process.text))

    def fill_disk(self):
        self.lossy = self.full = True
        with self.place.full_disk():
            time.sleep(self.dice.uniform(0.1, 2))

    def _command(self, name, *more):
        assert_no_crash(self.place.commands.run("trainerd", name, self.place.logdir, *more))

    def _pause(self, pid):
        since = time.time()
        _send(pid, signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.1, 3))
        _send(pid, signal.SIGCONT)
        self.lives[-1].frozen.append((since, time.time()))

    def _program(self):
        found = STARTED.findall(self.process.text)
        return int(found[-1]) if found and self.process.running else 0

    def judge_life(self):
        """Judges a life that is over by what it said, and by the checkpoints that there are."""
        life = self.lives[-1]
        result = life.process.wait()
        life.ended = life.ended or time.time()
        assert_no_crash(result)
        self._judge_exit(result)
        for seconds, line in life.silences():
            assert seconds <= MAX_SILENCE, f"silent for {seconds:.0f} s after {line}:\n{result}"
        if self.place.kind == "job" and (step := self.announced()) >= 0:
            prefixes = judges.load_all(self.place.logdir)
            self.place.worlds.checkpoints += len(prefixes)
            latest = checkpoints.step_of(checkpoints.latest(self.place.logdir))
            assert latest >= step, f"step {step} was announced as saved, the newest checkpoint is of {latest}:\n{result}"
        return result

    def _judge_exit(self, result):
        """By doc/exit-codes.md. A signal to a process that does not catch it yet ends it before it has done anything."""
        assert "broken=" not in result.text, f"the program complains:\n{result}"
        if result.code < 0 and not result.text:
            return
        if result.code == 0:
            said = COMPLETE in result.out or "to resume, type: " in _last_line(result)
            assert said, f"exit code 0 without being complete or stopped:\n{result}"
            return
        program = self.place.kind == "program"
        taken = (program or self._rival) and "another folder has its name" in result.text  # which the program has made first, with a file in it
        allowed = {-9: True, 74: self.full or taken or self._stopping and program, 75: self._rival, 1: program}
        assert allowed.get(result.code), f"exit code {result.code} without a reason:\n{result}"
        assert result.code == -9 or _last_line(result).startswith("trainerd: "), f"the last line is no error:\n{result}"

    def judge(self, never, curves):
        """Wants the bits and the points of the undisturbed training, and that it never went back behind what it had announced."""
        saved, lost = -1, set()
        for announced, resumed in self.said():
            if resumed:
                assert int(resumed) >= saved, f"resumed at step {resumed} after a save of {saved}"
                lost |= set(range(saved + 1, int(resumed) + 1))
            saved = max(saved, int(announced or -1))
        judges.assert_no_temporary(self.place.logdir)
        assert not (self.place.logdir / "trainerd.sock").exists()
        if not self.lossy:  # a full disk costs points, and a kill of trainerd those in the pipe of its program
            judges.assert_holds(curves, judges.curves(never), lost if self.place.kind == "program" else set())
        if self.place.kind == "job":
            different = checkpoints.same_bits(checkpoints.latest(never), checkpoints.latest(self.place.logdir))
            assert not different, f"other bits than undisturbed: {different}"
        else:
            self._judge_program(never)

    def _judge_program(self, never):
        pattern = self.place.about.get("pattern")
        if not pattern:
            return
        ends = [_contents(max(folder.glob(pattern), key=_step_of)) for folder in (never, self.place.logdir)]
        assert ends[0] == ends[1], "the last checkpoint is not that of the undisturbed training"


def _last_line(result):
    return (result.err.rstrip().splitlines() or [""])[-1]


def _send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _step_of(path):
    found = re.findall(r"\d+", path.name)
    return int(found[-1]) if found else 0


def _contents(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in _files(path)}


def _files(path):
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
