"""Control flow: conditions and loops as TensorFlow 1 writes them, and as functions."""

import contextlib

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def feeds(n):
    return {"x:0": rng(n).uniform(-1, 1, [3, 5, 4]).astype("f")}


def sequence():
    return tf1.placeholder(tf.float32, [None, 5, 4], "x")


def conditions():
    x = sequence()
    w, b = variable("w", [4, 2]), variable("b", [2], resource=True)
    flat = tf.reshape(x, [-1, 4])
    positive = tf.reduce_sum(x) > 0
    y = tf.cond(positive, lambda: flat @ w + b, lambda: tf.tanh(flat @ w) * b)
    nested = tf.cond(positive, lambda: tf.cond(x[0, 0, 0] > 0, lambda: w * 2, lambda: w * 3), lambda: tf.zeros_like(w))
    case = tf1.case(
        [(x[0, 0, 0] < -0.5, lambda: tf.constant(1.0)), (x[0, 0, 0] < 0.5, lambda: tf.constant(2.0))],
        default=lambda: tf.constant(3.0),
    )
    return trained({"y": y, "nested": nested, "case": case}, feeds=feeds)


def loops():
    x = sequence()
    count, total = tf1.while_loop(lambda i, s: i < 7, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, 0.0])
    halved = tf1.while_loop(lambda v: tf.reduce_sum(v) > 1, lambda v: v / 2, [tf.abs(x)])
    return Built(None, {"count": count, "total": total, "halved": halved}, feeds)


def recurrent():
    """A loop over time with its gradient: the by-hand recurrent network."""
    x = sequence()
    w, u = variable("w", [4, 6]), variable("u", [6, 6])

    def body(t, h):
        return t + 1, tf.tanh(tf.matmul(x[:, t], w) + tf.matmul(h, u))

    _, h = tf1.while_loop(lambda t, h: t < 5, body, [0, tf.zeros([tf.shape(x)[0], 6])])
    return trained({"h": h}, feeds=feeds)


def mapped():
    x = sequence()
    w = variable("w", [4])
    return trained(
        {
            "map": tf1.map_fn(lambda row: tf.reduce_sum(row * w), x),
            "scan": tf1.scan(lambda a, row: a * 0.5 + row * w, x, tf.zeros([5, 4])),
            "fold": tf1.foldl(lambda a, row: a + row * w, x),
        },
        feeds=feeds,
    )


@contextlib.contextmanager
def functional():
    tf1.enable_control_flow_v2()
    try:
        yield
    finally:
        tf1.disable_control_flow_v2()


def as_functions(build):
    def run():
        with functional():
            return build()

    return run


for build in (conditions, loops, recurrent, mapped):
    program(build, name=build.__name__ + "_v1")
    program(as_functions(build), name=build.__name__ + "_v2")


@program
def unrolled_lstm():
    """An LSTM unrolled in time, by its parts."""
    x = sequence()
    kernel, bias = variable("kernel", [4 + 5, 20]), variable("bias", [20])
    c = h = tf.zeros([tf.shape(x)[0], 5])
    for t in range(5):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x[:, t], h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return trained({"h": h, "c": c}, feeds=feeds)


@program
def functions():
    """Functions of the library, called with their gradient."""

    @tf.function
    def dense(x, w):
        return tf.nn.relu(x @ w)

    x = sequence()
    flat = tf.reshape(x, [-1, 4])
    return trained({"y": dense(flat, variable("w", [4, 3], resource=True))}, feeds=feeds)


@program
def custom_gradient():
    @tf.custom_gradient
    def clipped(v):
        return tf.exp(v), lambda g: tf.clip_by_value(g, -0.1, 0.1)

    return trained({"y": clipped(tf.reshape(sequence(), [-1, 4]) * variable("w", [4], resource=True))}, feeds=feeds)


@program
def assertions():
    x = sequence()
    w = variable("w", [4])
    checks = [
        tf1.assert_less(x, 2.0),
        tf1.assert_equal(tf.shape(x)[2], 4),
        tf1.assert_non_negative(tf.abs(x)),
        tf1.Assert(tf.reduce_all(x < 2), [x]),
        tf1.assert_rank(x, 3),
    ]
    with tf.control_dependencies(checks):
        y = tf1.Print(x * w, [w], "w: ", first_n=0)
    return trained({"y": y}, feeds=feeds)
