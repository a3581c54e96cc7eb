"""Builds events_writer.cc against the TensorFlow that is installed, unless that
has been done, and becomes it.

    cpp_writer.py BUILD_DIR ARGUMENTS...
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys


def build(program):
    """Compiles without importing TensorFlow, which takes longer than the race."""
    tensorflow = importlib.util.find_spec("tensorflow")
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not tensorflow or not compiler:
        print("TensorFlow or a C++ compiler is missing", file=sys.stderr)
        sys.exit(77)
    home = pathlib.Path(tensorflow.origin).parent
    subprocess.run(
        [compiler, "-O2", "-std=c++17", "-w", f"-I{home}/include", str(pathlib.Path(__file__).with_name("events_writer.cc")),
         "-o", str(program), f"-L{home}", "-l:libtensorflow_framework.so.2", "-l:libtensorflow_cc.so.2", f"-Wl,-rpath,{home}"],
        check=True)


program = pathlib.Path(sys.argv[1], "events_writer")
if not program.exists():
    build(program)
os.execv(program, [str(program), *sys.argv[2:]])
