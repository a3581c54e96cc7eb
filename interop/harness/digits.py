"""The rows of the digits example, scaled as its config asks."""

import numpy as np

from harness.commands import DIGITS_CONFIG

SCALE = 16


def load():
    """float32 [1797, 64] from 0 to 1, int64 [1797], in the order of the file."""
    table = np.loadtxt(DIGITS_CONFIG.parent / "digits.csv.gz", delimiter=",", dtype=np.float32)
    return table[:, :-1] / SCALE, table[:, -1].astype(np.int64)
