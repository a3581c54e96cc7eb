"""Makes the picture of real TensorBoard on a digits run that the README shows.

    python interop/screenshot.py LOGDIR doc/tensorboard.png
"""

import pathlib
import re
import sys
import tempfile
import time

from harness import browser as chromium
from harness import timeseries
from harness.tensorboard import TensorBoard

# What fits into a picture of 1400 x 900: four curves and two histograms.
TAGS = "^loss|accuracy|/sec|kernel"
SETTLE_SECONDS = 2  # the cards fade in


def take(logdir, picture):
    """Shows logdir in TensorBoard as a run named digits, and writes what Chromium sees as a PNG."""
    with tempfile.TemporaryDirectory() as parent:
        pathlib.Path(parent, "digits").symlink_to(pathlib.Path(logdir).resolve(strict=True))
        with TensorBoard(parent, "data-server") as board, chromium.Browser(chromium.find()) as browser:
            tags = board.scalar_tags()["digits"] | board.histogram_tags()["digits"]
            timeseries.show(browser, board.url, TAGS)
            timeseries.wait_for_cards(browser, {tag for tag in tags if re.search(TAGS, tag)})
            time.sleep(SETTLE_SECONDS)
            pathlib.Path(picture).write_bytes(browser.screenshot())


def main(args):
    if len(args) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not chromium.find():
        print("no Chromium here (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    take(*args)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
