"""What became of a killed training, read from trainerd's log and its logdir."""

import glob
import re

START, SAVE, SAVED, STEP = "while it started", "within a save", "just after a save", "within a step"

ANNOUNCED = re.compile(r'msg=saved step=(\d+) checkpoint="?([^"\s]+)')
BEGUN = re.compile(r'msg=started pid=\d+ attempt=\d+ checkpoint="?([^"\s]+)')


class Record:
    """The kills of a run: at what moments they came, and what they cost."""

    def __init__(self):
        self.moments = {START: 0, SAVE: 0, SAVED: 0, STEP: 0}
        self.missing = []

    def kills(self):
        return sum(self.moments.values())

    def killed(self, moment, text):
        """Notes a kill, and whether the last checkpoint that trainerd has announced is still there after it."""
        self.moments[moment] += 1
        announced = ANNOUNCED.findall(text)
        if announced and not glob.glob(glob.escape(announced[-1][1]) + "*"):  # it may be what the names of several files begin with
            self.missing.append(f"{announced[-1][1]} was announced, but is not there")

    def problems(self, text):
        """Announced checkpoints that are not there, and starts that were given an older one than the newest announced.

        One that the program has just saved may be given before it is announced.
        """
        problems, newest, older = list(self.missing), "none", set()
        for line in text.splitlines():
            if found := ANNOUNCED.search(line):
                older.add(newest)
                newest = found.group(2)
                older.discard(newest)
            elif (found := BEGUN.search(line)) and found.group(1) in older:
                problems.append(f"a start got {found.group(1)}, though {newest} was announced last")
        return problems

    def text(self, log):
        fell = ", ".join(f"{count} {moment}" for moment, count in self.moments.items() if count)
        return f"{self.kills()} kills ({fell}), {len(BEGUN.findall(log))} starts, {len(ANNOUNCED.findall(log))} saves announced"
