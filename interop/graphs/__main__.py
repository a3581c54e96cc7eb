"""Records the programs: python -m graphs DIR [NAME...]"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

from graphs import recorder
from graphs.programs import PROGRAMS


def main(folder, *names):
    tf.compat.v1.disable_v2_behavior()
    for name, program in PROGRAMS.items():
        if not names or name in names:
            recorder.record(program, os.path.join(folder, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
