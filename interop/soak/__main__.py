"""Trains jobs drawn at random as real processes, kills, freezes, stops and starves them, and judges what is left: `make soak`.

Everything follows from the seed of a round but the moments, so a seed that failed may need several rounds to fail again.
"""

import argparse
import logging
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from cluster import interrupt  # noqa: E402
from soak.places import Place, Worlds  # noqa: E402
from soak.servers import train_on_servers  # noqa: E402
from soak.trainings import train_here  # noqa: E402

ROUNDS = {"job": train_here, "program": train_here, "cluster": train_on_servers}
WEIGHTS = {"job": 5, "program": 4, "cluster": 1}  # a cluster takes as long as several others
MOST_FAILURES = 10  # then it ends: they fill the disk


def duration(text):
    """Seconds, from a text as 90s, 10m or 1h."""
    found = re.fullmatch(r"([\d.]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s, 10m or 1h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def play(worlds, seed, kind, keep):
    """Plays one round. Returns what came of it, and whether it is well; the folder of one that is not stays."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{kind}-{seed}-", dir=keep))
    place = Place(worlds, folder, seed, kind)
    try:
        with place:
            told = ROUNDS[kind](place, random.Random(seed))
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        raise
    except Exception:
        return f"{place}\n{traceback.format_exc()}repeat with: make soak SEED={seed} KIND={kind}\nits files are in {folder}", False
    shutil.rmtree(folder)
    return f"{place}: {told}", True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder with the built commands and world.test")
    parser.add_argument("--for", dest="seconds", type=duration, default=float("inf"), help="such as 1h (default: until it is stopped)")
    parser.add_argument("--seed", type=int, help="the only round to play")
    parser.add_argument("--kind", choices=ROUNDS, help="the only kind of round")
    parser.add_argument("--keep", type=pathlib.Path, default=tempfile.gettempdir(), help="where folders of failed rounds stay")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT is ignored in what a shell starts in the background
        signal.signal(number, interrupt)
    logging.disable(logging.WARNING)  # of TensorBoard, about restarts
    options.keep.mkdir(parents=True, exist_ok=True)
    worlds, began, count, failed = Worlds(options.bin.resolve()), time.monotonic(), 0, 0
    try:
        while time.monotonic() - began < options.seconds and failed < MOST_FAILURES and (options.seed is None or count == 0):
            seed = random.SystemRandom().randrange(1, 1 << 48) if options.seed is None else options.seed
            kind = options.kind or random.Random(seed).choices(*zip(*WEIGHTS.items()))[0]
            start = time.monotonic()
            told, well = play(worlds, seed, kind, options.keep.resolve())
            print(f"{'ok  ' if well else 'FAIL'} {time.monotonic() - start:4.0f} s  {told}", flush=True)
            count, failed = count + 1, failed + (not well)
    except KeyboardInterrupt:
        pass
    print(f"soak: {count} rounds in {time.monotonic() - began:.0f} s, {failed} failed; {worlds.summary()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
