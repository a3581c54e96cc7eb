"""What ops print in the embedded runtime: the same text, on the same stream, as in TensorFlow."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1

STEPS = 3
ENDED = b"%d steps\n" % STEPS
PRINTED = """
import sys, numpy, tensorflow as tf
tf.compat.v1.disable_v2_behavior()
tf.compat.v1.train.import_meta_graph("graph.meta")
with tf.compat.v1.Session() as session:
    print("begin", file=sys.stderr, flush=True)
    for target in sys.argv[1:]:
        for _ in range(%d):
            session.run(target, {"x:0": numpy.load("x.npy")})
""" % STEPS


def build(x, file):
    """The ops that print, by name."""
    n = tf.constant([[1, 2, 3], [4, 5, 6]], tf.int64)
    tf.print("x is", x, "and n", n, summarize=2, name="both")
    tf.print(x, n, sep=";", end="!\n", summarize=-1, name="separated")
    tf.print("to out", x[0], output_stream=sys.stdout, name="out")
    tf.print("a % sign %d {} \\", {"k": n[0], "l": [x[0, 0], tf.constant(True)]}, tf.constant(["a", "b\n"]), (1, 2.5), name="nested")
    tf.print("half", tf.cast(x, tf.half), tf.cast(x, tf.float64) * 0.1, tf.constant([1e20, np.nan, -np.inf]), name="types")
    tf.print(tf.SparseTensor([[0, 1], [1, 2]], [1.5, 2.5], [2, 3]), name="sparse")
    tf.print(tf.zeros([0, 3]), tf.zeros([2, 0]), tf.zeros([2, 2, 2]), summarize=1, name="empty")
    tf.print(tf.complex(1.0, 2.0), tf.constant(3, tf.uint8), tf.constant([-1], tf.int8), name="small")
    tf.print("to a file", x, output_stream="file://" + file, end="", name="file")
    y = tf1.Print(x, [x, n, tf.constant(["s", "t\n"]), tf.constant(True)], message="100% of x: ", first_n=2, summarize=5)
    y = tf1.Print(y, [tf.shape(y), tf.constant("text"), tf.zeros([0]), tf.reduce_sum(x)])
    tf.identity(y, "first_form")
    tf.identity(tf.cond(x[0, 0] < 5, lambda: tf1.Print(x * 1, [x], "taken "), lambda: tf1.Print(x, [x], "not taken ")), "cond")
    tf.identity(tf1.while_loop(lambda i: i < 3, lambda i: tf1.Print(i + 1, [i], "loop "), [tf.constant(0)]), "loop")
    tf.identity(tf1.Print(tf.constant(1), [tf.constant(2)], "constant "), "constant")

    @tf.function
    def traced(v):
        tf.print("in a function", v[0])
        return v + 1

    tf.identity(traced(x), "function")
    return "both separated out nested types sparse empty small file first_form cond loop constant function".split()


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The folder with a graph, the names of its ops, and what TensorFlow printed on its streams and to the file."""
    folder = tmp_path_factory.mktemp("printing")
    with tf.Graph().as_default():
        ops = build(tf1.placeholder(tf.float32, [3, 4], "x"), str(folder / "lines"))
        tf1.train.export_meta_graph(str(folder / "graph.meta"))
    np.save(folder / "x.npy", np.arange(12, dtype="f").reshape(3, 4) * 1.25)
    done = subprocess.run([sys.executable, "-c", PRINTED, *ops], cwd=folder, capture_output=True, check=True, timeout=300)
    lines = (folder / "lines").read_bytes()
    (folder / "lines").unlink()
    return folder, ops, done.stdout, done.stderr.partition(b"begin\n")[2], lines


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_prints_what_tensorflow_prints(printed, bin_dir, form):
    folder, ops, out, err, lines = printed
    (folder / "lines").unlink(missing_ok=True)
    got_out = got_err = b""
    for op in ops:
        done = subprocess.run([bin_dir / "trainerd", "graph", "run", "graph.meta", "--feed", "x=x.npy", "--target", op, "--steps", str(STEPS), *form],
                              cwd=folder, capture_output=True, check=True, timeout=120)
        assert done.stderr.endswith(ENDED)
        got_out, got_err = got_out + done.stdout, got_err + done.stderr.removesuffix(ENDED)
    assert (folder / "lines").read_bytes() == lines
    if form:  # what is printed must not get between lines of JSON
        assert sorted((got_out + got_err).splitlines()) == sorted([b'{"step":%d,"fetches":{}}' % n for n in range(STEPS)] * len(ops) + (out + err).splitlines())
        return
    assert got_out == out
    assert got_err == err
