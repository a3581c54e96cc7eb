"""Moving elements about: slices, gathers, segments, partitions, with their gradients."""

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def cube(scale=1.0):
    x = tf1.placeholder(tf.float32, [None, 4, 6], "x")
    return x * variable("w", [6]), lambda n: {"x:0": (rng(n).uniform(-1, 1, [3, 4, 6]) * scale).astype("f")}


@program
def shapes():
    h, feeds = cube()
    parts, unequal = tf.split(h, 3, axis=2), tf.split(h, [1, 2, -1], axis=1)
    rows = tf.unstack(h, num=4, axis=1)
    out = {
        "concat": tf.concat([h, h * 2], -1),
        "concat0": tf.concat([parts[0], parts[2]], 0),
        "stack": tf.stack(rows[::-1], axis=2),
        "unequal": unequal[1] * 2,
        "expand": tf.expand_dims(h, -2),
        "squeeze": tf.squeeze(tf.expand_dims(h, 1), [1]),
        "squeeze_all": tf.squeeze(h[:1]),
        "transpose": tf.transpose(h, [2, 0, 1]),
        "reverse_transpose": tf.transpose(h),
        "tile": tf.tile(h, [1, 2, 1]),
        "pad": tf.pad(h, [[0, 0], [1, 2], [0, 1]]),
        "pad_value": tf.pad(h, [[1, 0], [0, 0], [0, 0]], constant_values=3.0),
        "mirror": tf.pad(h, [[0, 0], [1, 2], [2, 0]], "REFLECT"),
        "symmetric": tf.pad(h, [[1, 1], [0, 0], [0, 2]], "SYMMETRIC"),
        "reverse": tf.reverse(h, [0, -1]),
        "reshape": tf.reshape(h, [-1, 8]),
        "flatten": tf.reshape(h, [tf.shape(h)[0], 24]),
        "shape": tf.shape(h),
        "size": tf.size(h),
        "rank": tf.rank(h),
        "shapes": tf1.shape_n([h, h])[1],
        "fill": tf.fill([2, 3], h[0, 0, 0]),
        "zeros": tf.zeros_like(h),
        "ones": tf.ones_like(h),
        "broadcast": tf.broadcast_to(h[:, :1], [3, 4, 6]),
        "linspace": tf.linspace(0.0, 1.0, 5),
        "roll": tf.roll(h, [1, -2], [0, 2]),
        "space": tf1.space_to_depth(tf.reshape(h, [3, 4, 6, 1]), 2),
        "depth": tf1.depth_to_space(tf.reshape(h, [3, 2, 3, 4]), 2),
        "to_batch": tf1.space_to_batch_nd(tf.reshape(h, [3, 4, 6, 1]), [2, 3], [[0, 0], [0, 0]]),
        "sequence": tf1.reverse_sequence(h, [1, 4, 2], 1, batch_dim=0),
        "meshgrid": tf.meshgrid(h[0, 0], h[0, :, 0])[1],
        "repeat": tf.repeat(h, 2, axis=1),
        "one_hot": tf.one_hot([1, -1, 2], 4, on_value=2.0, off_value=-1.0),
        "one_hot0": tf.one_hot([[1, 0]], 3, axis=0),
        "sequence_mask": tf.sequence_mask([1, 3, 2], 4, tf.float32),
        "identity_n": tf.identity_n([h, h])[1],
        "guarantee": tf.stop_gradient(h),
        "ensure": tf.ensure_shape(h, [3, None, 6]),
        "numerics": tf.debugging.check_numerics(h, "h"),
        "to_depth_double": tf.cast(h, tf.float64),
    }
    return trained(out, feeds=feeds)


@program
def slices():
    h, feeds = cube()
    n = tf.shape(h)[0]
    out = {
        "slice": tf.slice(h, [0, 1, 2], [2, -1, 3]),
        "row": h[1],
        "last": h[-1, ..., -2],
        "range": h[:, 1:3, ::2],
        "back": h[:, ::-1, 4:1:-2],
        "newaxis": h[:, tf.newaxis, 0],
        "ellipsis": h[..., tf.newaxis, 2:],
        "dynamic": h[: n - 1, 1:n],
        "scalar": h[0, 0, 0],
        "mask_end": h[1:, :, -3:],
        "empty": h[:, 2:2],
        "shrink_mid": h[:, 2, :],
    }
    return trained(out, feeds=feeds)


@program
def gathers():
    h, feeds = cube()
    w = variable("table", [9, 3])
    ids = tf.constant([[1, 8, 1], [0, 1, 3]])
    out = {
        "gather": tf.gather(h, [2, 0, 2], axis=0),
        "axis": tf.gather(h, [5, 0, 0], axis=-1),
        "nd": tf.gather_nd(h, [[0, 1], [2, 3]]),
        "nd_full": tf.gather_nd(h, [[[0, 1, 2]], [[2, 3, 5]]]),
        "table": tf.gather(w, ids),
        "batch": tf.gather(h, [[0, 2], [1, 1], [3, 0]], batch_dims=1),
        "lookup": tf.nn.embedding_lookup(w, ids),
        "max_norm": tf1.nn.embedding_lookup(w, ids, max_norm=0.5),
        "params": tf1.gather(w, [3]),
        "mask": tf.boolean_mask(h, h[:, :, 0] > 0),
        "mask_vector": tf.boolean_mask(h, [True, False, True]),
        "where": tf1.where(h > 0),
        "where3": tf.where(tf.greater(h, 0.2), h, tf.zeros_like(h)),
        "select_rows": tf1.where([True, False, True], h, -h),
        "scatter": tf.scatter_nd([[4], [1], [4]], w[:3], [6, 3]),
        "top": tf.nn.top_k(h, 3)[0],
        "top_at": tf.nn.top_k(h, 2)[1],
        "sorted": tf.sort(h, axis=1, direction="DESCENDING"),
        "argsort": tf.argsort(h, axis=-1),
        "tensor_update": tf.tensor_scatter_nd_update(w, [[1], [3]], w[4:6] * 2),
        "tensor_add": tf.tensor_scatter_nd_add(w, [[1], [1]], w[4:6]),
        "searchsorted": tf.searchsorted([0.0, 0.5, 1.0], [0.2, 0.5, 3.0]),
        "nth": tf1.nn.in_top_k(h[0], [1, 2, 3, 0], 2),
        "tensor_max": tf.tensor_scatter_nd_max(w, [[1], [2]], w[4:6]),
    }
    return trained(out, feeds=feeds)


@program
def segments():
    h, feeds = cube()
    flat = tf.reshape(h, [12, 6])
    ids = tf.constant([0, 0, 0, 1, 1, 2, 2, 2, 2, 4, 4, 5])
    mixed = tf.constant([3, 0, 1, 1, 0, 2, 2, 5, 3, 4, 0, 1])
    m = tf.math
    out = {
        "sum": m.segment_sum(flat, ids),
        "mean": m.segment_mean(flat, ids),
        "max": m.segment_max(flat, ids),
        "min": m.segment_min(flat, ids),
        "prod": m.segment_prod(flat + 2, ids),
        "unsorted_sum": m.unsorted_segment_sum(flat, mixed, 7),
        "unsorted_mean": m.unsorted_segment_mean(flat, mixed, 7),
        "unsorted_max": m.unsorted_segment_max(flat, mixed, 6),
        "unsorted_min": m.unsorted_segment_min(flat, mixed, 6),
        "unsorted_sqrt": m.unsorted_segment_sqrt_n(flat, mixed, 6),
        "unsorted_prod": m.unsorted_segment_prod(flat + 2, mixed, 6),
        "sparse_sum": tf1.sparse_segment_sum(flat, [3, 0, 7, 7], [0, 0, 1, 3]),
        "sparse_mean": tf1.sparse_segment_mean(flat, [3, 0, 7, 7], [0, 0, 1, 2]),
        "sparse_sqrt": tf1.sparse_segment_sqrt_n(flat, [3, 0, 7, 7], [0, 0, 1, 2]),
        "sparse_sum_n": tf1.sparse_segment_sum(flat, [3, 0, 7], [0, 0, 2], num_segments=5),
    }
    return trained(out, feeds=feeds)


@program
def partitions():
    h, feeds = cube()
    flat = tf.reshape(h, [12, 6])
    which = tf.cast(flat[:, 0] > 0, tf.int32)
    low, high = tf.dynamic_partition(flat, which, 2)
    at = tf.dynamic_partition(tf.range(12), which, 2)
    ids = tf.constant([4, 2, 4, 4, 9, 2])
    values, index = tf.unique(ids)
    _, _, counts = tf.unique_with_counts(ids)
    diff, diff_at = tf1.setdiff1d(tf.range(6), [1, 3])
    out = {
        "low": low,
        "high": high * 2,
        "stitched": tf.dynamic_stitch(at, [low, high * 3]),
        "parallel": h[0],
        "unique": values,
        "index": index,
        "counts": counts,
        "diff": diff,
        "diff_at": diff_at,
        "inverse": tf.math.invert_permutation([2, 0, 1]),
        "segmented": tf.math.unsorted_segment_sum(flat[:6], index, 3),
        "histogram": tf.histogram_fixed_width(h, [-1.0, 1.0], 7),
        "listdiff": tf1.setdiff1d(["a", "b"], ["b"])[0],
        "unique_floats": tf.unique([1.5, 2.5, 1.5])[0],
    }
    return trained(out, feeds=feeds)


@program
def variables():
    """Scatter and assign ops on both kinds of variables, partitioned ones, and shapes of variables."""
    ref = variable("ref", [6, 2], trainable=False)
    res = variable("res", [6, 2], resource=True, trainable=False)
    counter = tf1.get_variable("counter", [], tf.int64, tf1.zeros_initializer(), trainable=False, use_resource=False)
    parts = tf1.get_variable(
        "parts",
        [7, 3],
        initializer=tf1.random_uniform_initializer(-1, 1, seed=3),
        partitioner=tf1.fixed_size_partitioner(3),
        use_resource=False,
    )
    looked = tf1.nn.embedding_lookup(parts, [0, 6, 3, 3], partition_strategy="div")
    modded = tf1.nn.embedding_lookup([variable("m0", [3, 2]), variable("m1", [3, 2])], [0, 1, 4, 5])
    loss = (
        tf.reduce_sum(tf.square(looked))
        + tf.reduce_sum(tf.convert_to_tensor(parts) * 0.1)
        + tf.reduce_sum(tf.square(modded))
    )
    at, row = tf.constant([1, 4, 1]), tf.constant([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    train = tf1.train.AdagradOptimizer(0.1).minimize(loss, tf1.train.get_or_create_global_step())
    steps = [train]

    def then(make):
        with tf.control_dependencies(steps[-1:]):
            steps.append(make())

    for v in (ref, res):
        for op in (
            tf1.scatter_add,
            tf1.scatter_sub,
            tf1.scatter_mul,
            tf1.scatter_max,
            tf1.scatter_min,
            tf1.scatter_div,
            tf1.scatter_update,
        ):
            then(lambda: op(v, at[1:], row[1:] + 0.5))
        then(lambda: tf1.scatter_nd_add(v, [[2, 1], [3, 0], [2, 1]], [1.0, 2.0, 3.0]))
        then(lambda: tf1.scatter_nd_sub(v, [[2], [3]], row[1:]))
        then(lambda: tf1.scatter_nd_update(v, [[5]], row[:1]))
        then(lambda: tf1.assign_add(v, tf.ones([6, 2])))
        then(lambda: tf1.assign_sub(v, tf.ones([6, 2]) * 0.5))
    then(lambda: tf1.assign_add(counter, 2))
    then(lambda: tf1.count_up_to(counter, 100))
    then(lambda: tf1.scatter_add(res, at, 2.0))
    then(lambda: tf1.scatter_add(ref, at, 2.0))
    with tf.control_dependencies(steps[-1:]):
        seen = {"ref": ref.read_value(), "res": res.read_value()}
    initialized = {
        "ref_ready": tf1.is_variable_initialized(ref),
        "res_ready": tf1.is_variable_initialized(res),
        "missing": tf1.report_uninitialized_variables(),
    }
    return Built(tf.group(*steps), {"loss": loss, **seen, **initialized})


@program
def sparse_tensors():
    """SparseTensor from placeholders: lookups with combiners, products, conversions."""
    tf1.placeholder(tf.int64, [None, 2], "at")
    at = tf1.get_default_graph().get_tensor_by_name("at:0")
    ids, weights = tf1.placeholder(tf.int64, [None], "ids"), tf1.placeholder(tf.float32, [None], "weights")
    sp_ids = tf.SparseTensor(at, ids, tf.constant([4, 5], tf.int64))
    sp_weights = tf.SparseTensor(at, weights, tf.constant([4, 5], tf.int64))
    table, w = variable("table", [10, 3]), variable("w", [5, 2])
    lookup = tf1.nn.embedding_lookup_sparse
    out = {
        "mean": lookup(table, sp_ids, None, combiner="mean"),
        "sum": lookup(table, sp_ids, sp_weights, combiner="sum"),
        "sqrtn": lookup(table, sp_ids, None, combiner="sqrtn"),
        "product": tf1.sparse_tensor_dense_matmul(sp_weights, w),
        "dense": tf1.sparse_tensor_to_dense(sp_weights),
        "row_sum": tf1.sparse_reduce_sum(sp_weights, 1),
        "to_dense": tf1.sparse_to_dense(at, [4, 5], ids, -1),
        "safe": tf1.nn.safe_embedding_lookup_sparse(table, sp_ids, None, combiner="mean"),
    }

    def feeds(n):
        r = rng(n)
        return {
            "at:0": np.array([[0, 0], [0, 3], [1, 2], [2, 0], [2, 4], [3, 1]], np.int64),
            "ids:0": r.randint(0, 10, 6),
            "weights:0": r.uniform(0.1, 1, 6).astype("f"),
        }

    return trained(out, feeds=feeds)
