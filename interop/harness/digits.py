"""The rows of the digits example, as they are in its file: the graph scales them."""

import numpy as np

from harness.commands import DIGITS_CONFIG


def load():
    """float32 [1797, 64] from 0 to 16, int64 [1797], in the order of the file."""
    table = np.loadtxt(DIGITS_CONFIG.parent / "digits.csv.gz", delimiter=",", dtype=np.float32)
    return table[:, :-1], table[:, -1].astype(np.int64)
