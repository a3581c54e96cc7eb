"""What a logdir and a log say, read without TensorFlow, so that a test may look often."""

import hashlib
import re

_CURRENT = re.compile(r'^model_checkpoint_path: ".*-(\d+)"$', re.MULTILINE)
_SHOWN = re.compile(r"msg=training step=(\d+)")
_ANNOUNCED = re.compile(r"\bsaved\b.*?\bstep=(\d+)")


def current_step(logdir):
    """The step of the checkpoint that the file `checkpoint` names; -1 without one."""
    try:
        found = _CURRENT.search((logdir / "checkpoint").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return -1
    return int(found[1]) if found else -1


def announced_steps(result):
    """The steps that a log calls saved, in order."""
    return [int(step) for step in _ANNOUNCED.findall(result.text)]


def steps_shown(text):
    """The steps of a log's lines about the training, in order."""
    return [int(step) for step in _SHOWN.findall(text)]


def contents(logdir):
    """{name: digest} of every file in logdir."""
    files = (p for p in logdir.rglob("*") if p.is_file())
    return {str(p.relative_to(logdir)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
