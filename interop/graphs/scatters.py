"""Rows scattered into variables and tensors of all types, as memories of agents keep pictures, flags and names."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_resource_variable_ops, gen_state_ops

from graphs.recorder import Built, program, rng, tf1

R = tf.raw_ops
INTEGERS = [tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64]
REALS = [tf.float16, tf.bfloat16, tf.float32, tf.float64, *INTEGERS]
COMPLEX = [tf.complex64, tf.complex128]
ALL = [*REALS, *COMPLEX, tf.bool, tf.string]
TYPES = {"update": ALL, "min": REALS, "max": REALS}

# Those for which TensorFlow defines ScatterMin and ScatterMax on reference variables.
ORDERED = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64]


def converted(x, dtype):
    """Numbers in a type, cast when the program runs."""
    return tf.strings.as_string(x) if dtype == tf.string else tf.cast(x, dtype)


def fed():
    x = tf1.placeholder(tf.int32, [5, 2], "x")
    return x, lambda n: {"x:0": rng(n).randint(1, 9, [5, 2]).astype("i")}


def kept(name, dtype, resource):
    start = converted(tf.constant([[3, 40], [0, 1], [90, 0], [5, 5]]), dtype)
    return tf1.get_variable(name, initializer=start, use_resource=resource, trainable=False)


def scattered(op, dtype, x, resource):
    """A row twice, after which the order and the rounding show."""
    name = f"{op}_{dtype.name}"
    rows, updates = tf.constant([1, 3, 1, 0, 1]), converted(x, dtype)
    out, v = {}, kept(name, dtype, resource)
    if resource:
        change = getattr(gen_resource_variable_ops, "resource_scatter_" + op)(v.handle, rows, updates)
    else:
        change = getattr(gen_state_ops, "scatter_" + op)(v._ref(), rows, updates)
    changes = [change]
    if op in ("update", "add", "sub", "min", "max"):
        w, vectors = kept(name + "_nd", dtype, resource), rows[:, None]
        start = tf.identity(kept(name + "_start", dtype, True).read_value())
        nd = "ResourceScatterNd" if resource else "ScatterNd"
        call = getattr(R, nd + op.capitalize()) if resource else getattr(gen_state_ops, "scatter_nd_" + op)
        changes.append(call(ref=w.handle if resource else w._ref(), indices=vectors, updates=updates))
        out["tensor_" + name] = getattr(R, "TensorScatter" + op.capitalize())(tensor=start, indices=vectors, updates=updates)
    return changes, out


def scatters(resource):
    def build():
        x, feeds = fed()
        changes, out = [], {}
        for op in ("update", "add", "sub", "mul", "div", "min", "max"):
            types = TYPES.get(op, [*REALS, *COMPLEX])
            for dtype in types if resource or types != REALS else ORDERED:
                more, tensors = scattered(op, dtype, x, resource)
                changes += more
                out.update(tensors)
        for dtype in ALL:
            out["new_" + dtype.name] = tf.scatter_nd([[1], [3], [1], [0], [1]], converted(x - 4, dtype), [5, 2])
        return Built(tf.group(*changes), out, feeds)

    return build


program(scatters(False), name="scattered_types_ref")
program(scatters(True), name="scattered_types_resource")


@program
def flags():
    """Truths added and taken away."""
    x, feeds = fed()
    updates, rows = tf.equal(x % 2, 0), [[1], [3], [1], [0], [1]]
    changes = []
    for op in ("Add", "Sub"):
        v = kept(op, tf.bool, True)
        changes.append(getattr(R, "ResourceScatterNd" + op)(ref=v.handle, indices=rows, updates=updates))
    return Built(tf.group(*changes), {"new": tf.scatter_nd(rows, updates, [5, 2])}, feeds)


@program
def replay_memory():
    """What an agent saw, in variables: pictures as bytes, ends as truths, names; a batch by priority, and the priorities
    of what was drawn."""
    n = 16
    picture, end = tf1.placeholder(tf.uint8, [4, 4], "picture"), tf1.placeholder(tf.bool, [], "end")
    pictures = tf1.get_variable("pictures", [n, 4, 4], tf.uint8, tf1.zeros_initializer(), trainable=False)
    ends = tf1.get_variable("ends", initializer=tf.zeros([n], tf.bool), trainable=False, use_resource=True)
    names = tf1.get_variable("names", initializer=tf.fill([n], ""), trainable=False)
    priorities = tf1.get_variable("priorities", [n], tf.float16, tf1.zeros_initializer(), trainable=False)
    step = tf1.train.get_or_create_global_step()
    at = tf.cast(step % n, tf.int32)
    with tf.control_dependencies([
        tf1.scatter_update(pictures, at, picture),
        tf1.scatter_update(ends, at, end),
        tf1.scatter_update(names, at, tf.as_string(step)),
        tf1.scatter_update(priorities, at, tf.constant(1.5, tf.float16)),
    ]):
        sums = tf.cumsum(tf.cast(tf.identity(priorities), tf.float32))
        drawn = tf.minimum(tf.searchsorted(sums, sums[-1] * [0.1, 0.4, 0.4, 0.8]), n - 1)
        batch = {
            "drawn": drawn,
            "pictures": tf.gather(pictures, drawn),
            "ends": tf.gather(ends, drawn),
            "names": tf.gather(names, drawn),
        }
    with tf.control_dependencies(batch.values()):
        train = tf.group(tf1.scatter_add(priorities, drawn, tf.constant([0.1] * 4, tf.float16)), tf1.assign_add(step, 1))

    def feeds(k):
        return {"picture:0": rng(k).randint(0, 256, [4, 4]).astype("uint8"), "end:0": np.bool_(rng(k).rand() < 0.5)}

    return Built(train, batch, feeds)


@program
def half_embeddings():
    """Embeddings of 16 bits: the gradients of a row that was looked up twice are summed."""
    ids = tf1.placeholder(tf.int32, [8], "ids")
    train, fetches = [], {}
    for dtype in (tf.float16, tf.bfloat16):
        start = tf.cast(tf.reshape(tf.sin(tf.range(20.0)), [5, 4]), dtype)
        rows = tf1.get_variable("rows_" + dtype.name, initializer=start)
        found = tf.nn.embedding_lookup(rows, ids)
        twice = tf.gather_nd(found, [[0, 1], [0, 1]])
        loss = tf.reduce_sum(tf.square(tf.cast(found, tf.float32))) + tf.reduce_sum(tf.cast(twice, tf.float32))
        optimizer = tf1.train.GradientDescentOptimizer(0.05)
        pairs = optimizer.compute_gradients(loss, [rows])
        summed = tf.math.unsorted_segment_sum(pairs[0][0].values, pairs[0][0].indices, 5)
        with tf.control_dependencies([loss, summed]):
            train.append(optimizer.apply_gradients(pairs))
        fetches |= {"loss_" + dtype.name: loss, "summed_" + dtype.name: summed}
    return Built(tf.group(*train), fetches, lambda n: {"ids:0": rng(n).randint(0, 5, 8).astype("i")})


@program
def segment_sums():
    x, feeds = fed()
    types = [*REALS, *COMPLEX]
    sums = {t.name: tf.math.unsorted_segment_sum(converted(x * 331 % 100, t), [1, 3, 1, -1, 1], 5) for t in types}
    return Built(None, sums, feeds)


@program
def segment_types():
    """All folds of segments in all types, with segments that have no rows."""
    x, feeds = fed()
    x, out = tf.reshape(x * 331 % 100, [5, 2]), {}
    for op in ("Sum", "Mean", "Prod", "Max", "Min"):
        for t in REALS if op in ("Max", "Min") else [*REALS, *COMPLEX]:
            rows, name = converted(x % 7 + 1 if op == "Prod" else x, t), f"{op}_{t.name}"
            out[name] = getattr(R, "Segment" + op)(data=rows, segment_ids=[0, 0, 2, 2, 2])
            if op != "Mean":
                unsorted = getattr(R, "UnsortedSegment" + op)
                out["unsorted_" + name] = unsorted(data=rows, segment_ids=[1, 3, 1, -1, 1], num_segments=5)
    return Built(None, out, feeds)


@program
def counters():
    """Variables of all types that are added to and taken from."""
    x, feeds = fed()
    changes = []
    for resource in (False, True):
        for t in [*REALS, *COMPLEX]:
            for change in (tf1.assign_add, tf1.assign_sub):
                v = tf1.get_variable(f"{change.__name__}_{t.name}_{resource}", [5, 2], t, tf1.ones_initializer(),
                                     trainable=False, use_resource=resource)
                changes.append(change(v, converted(x, t)).op)
    return Built(tf.group(*changes), {}, feeds)


@program
def half_summaries():
    """Summaries of numbers of 16 bits."""
    x, feeds = fed()
    out = {}
    for t in (tf.float16, tf.bfloat16):
        tag, y = tf.constant(t.name), converted(x, t) / 3
        out["scalar_" + t.name] = R.ScalarSummary(tags=tag, values=y[0, 0])
        out["histogram_" + t.name] = R.HistogramSummary(tag=tag, values=y)
    return Built(None, out, feeds)


@program(rtol=0, atol=0)
def half_sparse_segments():
    """Rows of 16 bits that are picked and summed, and the gradients."""
    x, feeds = fed()
    picked, segments, out = [4, 0, 3, 3, 1], [0, 0, 2, 2, 2], {}
    for op in ("Sum", "Mean", "SqrtN"):
        for t in (tf.float16, tf.bfloat16):
            rows, name = converted(x, t) / 7, f"{op}_{t.name}"
            out[name] = getattr(R, "SparseSegment" + op)(data=rows, indices=picked, segment_ids=segments)
            back = getattr(R, f"SparseSegment{op}Grad")
            out["back_" + name] = back(grad=rows[:3], indices=picked, segment_ids=segments, output_dim0=6)
    return Built(None, out, feeds)
