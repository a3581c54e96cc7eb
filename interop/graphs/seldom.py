"""Programs with ops that few others have: clustering, learned samplers, soft ranks, Bessel functions, pipelines."""

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, initialized, program, rng, tf1, trained, variable

D = tf.data.Dataset


@program(steps=6)
def clusters():
    """K-means by mini-batches, as tf.contrib.factorization had it: k-means++, then means of what is nearest."""
    x = tf1.placeholder(tf.float32, [None, 8], "x")
    points = tf.constant(rng(99).uniform(-1, 1, [200, 8]).astype("f"))
    first = tf.raw_ops.KmeansPlusPlusInitialization(points=points, num_to_sample=5, seed=3, num_retries_per_sample=2)
    tried = tf.raw_ops.KmeansPlusPlusInitialization(points=points, num_to_sample=5, seed=4, num_retries_per_sample=-1)
    equal = tf.raw_ops.KmeansPlusPlusInitialization(points=points[:3], num_to_sample=3, seed=4, num_retries_per_sample=0)
    chain = tf.raw_ops.KMC2ChainInitialization(distances=tf.abs(points[:, 0]), seed=5)
    centers = tf1.get_variable("centers", initializer=rng(98).uniform(-1, 1, [5, 8]).astype("f"), use_resource=False)
    counts = tf1.get_variable("counts", initializer=np.zeros(5, np.int64), use_resource=False)
    nearest = {k: tf.raw_ops.NearestNeighbors(points=x, centers=centers, k=k) for k in (1, 3, 9)}
    ids, place, new = tf.unique_with_counts(nearest[1][0][:, 0], out_idx=tf.int64)
    sums = tf.math.unsorted_segment_sum(x, place, tf.size(ids))
    rate = 1.0 / tf.cast(tf.gather(counts, ids) + new, tf.float32)
    step = (sums - tf.cast(new, tf.float32)[:, None] * tf.gather(centers, ids)) * rate[:, None]
    out = {"first": first, "tried": tried, "equal": equal, "chain": chain, "step": step}
    out |= {f"{what}_{k}": t for k, pair in nearest.items() for what, t in zip(("nearest", "distance"), pair)}
    with tf.control_dependencies(list(out.values())):
        train = tf.group(tf1.scatter_add(centers, ids, step), tf1.scatter_add(counts, ids, new))
    return Built(train, out, lambda n: {"x:0": rng(n).uniform(-1, 1, [64, 8]).astype("f")})


@program(steps=6)
def learned_samples():
    """Word vectors by noise that is as frequent as the words so far."""
    word, near = tf1.placeholder(tf.int64, [32], "word"), tf1.placeholder(tf.int64, [32, 1], "near")
    vectors, w, b = variable("vectors", [50, 4]), variable("w", [50, 4]), variable("b", [50])
    samples = tf.random.learned_unigram_candidate_sampler(near, 1, 7, True, 50, seed=4)
    loss = tf.reduce_mean(tf.nn.nce_loss(w, b, near, tf.nn.embedding_lookup(vectors, word), 7, 50, sampled_values=samples))
    again = tf.random.learned_unigram_candidate_sampler(near, 1, 9, False, 50, seed=5)
    feeds = lambda n: {"word:0": rng(n).randint(0, 50, 32), "near:0": rng(n + 9).randint(0, 9, (32, 1))}
    return trained(dict(zip("abcdef", [*samples, *again])), loss=loss, feeds=feeds)


@program
def soft_ranks():
    """A loss of ranks by isotonic regression, and one of patches of volumes."""
    x = tf1.placeholder(tf.float32, [4, 9], "x")
    ranks, runs = tf.nn.isotonic_regression(tf.matmul(x, variable("w", [9, 9])), decreasing=True)
    growing, _ = tf.nn.isotonic_regression(tf.cast(x * 9, tf.int32), decreasing=False)
    out = {"ranks": ranks, "runs": runs, "growing": growing}
    volumes = tf1.placeholder(tf.float32, [2, 6, 5, 7, 2], "volumes")
    for padding in "VALID", "SAME":
        for stride in 1, 2:
            patches = tf1.extract_volume_patches(volumes, [1, 2, 3, 2, 1], [1, stride, 2, stride, 1], padding)
            out[f"{padding}_{stride}"] = patches @ variable(f"p{padding}{stride}", [24, 3])
    feeds = lambda n: {"x:0": rng(n).normal(size=[4, 9]).astype("f"), "volumes:0": rng(n).normal(size=[2, 6, 5, 7, 2]).astype("f")}
    return trained(out, feeds=feeds)


SPECIAL = "bessel_j0 bessel_j1 bessel_k0 bessel_k1 bessel_k0e bessel_k1e bessel_y0 dawsn expint fresnel_cos fresnel_sin spence"


@program(rtol=2e-5, atol=1e-6, steps=1)
def special_values():
    """Bessel functions and integrals everywhere, and Matern's kernel with its gradient."""
    x = [np.linspace(-6, 6, 97), np.geomspace(1e-6, 80, 60), -np.geomspace(1e-6, 80, 20)]
    x = np.concatenate([*x, [0, np.inf, -np.inf, np.nan, 2, 300, -300]])
    out = {}
    for dtype in np.float32, np.float64:
        t = tf.constant(x.astype(dtype))
        out |= {f"{name}_{dtype.__name__}": getattr(tf.math.special, name)(t) for name in SPECIAL.split()}
        out[f"bessel_y1_{dtype.__name__}"] = tf.math.special.bessel_y1(t[t > 0])
    far = tf.abs(variable("far", [5, 5])) + 0.5
    kernels = [far * tf.math.special.bessel_k1(far), tf.math.special.expint(far), tf.math.special.dawsn(far)]
    loss = tf.add_n([tf.reduce_sum(k) for k in [*kernels, tf.math.special.fresnel_sin(far), tf.math.special.spence(far)]])
    return trained(out, loss=loss)


@program
def own_iterators():
    """Functions of TensorFlow 2 that train over a data set: by an iterator of their own, and in a critical section."""
    v = variable("v", [3], resource=True)
    rows = D.from_tensor_slices(rng().uniform(-1, 1, [12, 3]).astype("f"))

    @tf.function
    def epoch(rows):
        walk, total = iter(rows.batch(4)), 0.0
        for _ in tf.range(3):
            x = next(walk)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x * v - 1.0) ** 2)
            v.assign_sub(0.1 * tape.gradient(loss, v))
            total += loss
        return total, walk.get_next_as_optional().has_value()

    total, more = epoch(rows)
    section = tf.CriticalSection(name="section")

    def double():
        with tf.control_dependencies([v.assign_add(tf.ones(3))]):
            return v.read_value() * 2

    with tf.control_dependencies([total]):
        first = section.execute(double)
    return Built(fetches={"total": total, "more": more, "first": first, "second": section.execute(double)})


def counted():
    """Data sets of all kinds of lengths."""
    for name, d in ("ten", D.range(10)), ("none", D.range(0)), ("ever", D.range(3).repeat()), ("some", D.range(5).filter(lambda x: x > 1)):
        yield name, d
        yield name + "_batch", d.batch(3)
        yield name + "_batch_whole", d.batch(3, drop_remainder=True)
        yield name + "_padded", d.padded_batch(3, drop_remainder=True)
        for n in -1, 0, 2, 12:
            yield f"{name}_take_{n}", d.take(n)
            yield f"{name}_skip_{n}", d.skip(n)
            yield f"{name}_repeat_{n}", d.repeat(n)
        yield name + "_shard", d.shard(3, 1)
        yield name + "_zip", D.zip((d, D.range(4)))
        yield name + "_joined", d.concatenate(D.range(4))
        yield name + "_window", d.window(3, shift=2, stride=2)
        yield name + "_window_whole", d.window(3, shift=2, stride=2, drop_remainder=True)
        yield name + "_map", d.map(lambda x: x + 1).map(lambda x: x, num_parallel_calls=2).shuffle(3).prefetch(1).cache()
        yield name + "_flat", d.flat_map(D.range)
        yield name + "_interleave", d.interleave(D.range, num_parallel_calls=2)
        yield name + "_unique", d.unique()
        yield name + "_scan", d.scan(np.int64(0), lambda s, x: (s, x))
        yield name + "_drawn", D.sample_from_datasets([d, D.range(4)], seed=1)
        yield name + "_groups", d.group_by_window(lambda x: x, lambda k, w: w.batch(2), 2)
        yield name + "_asserted", d.filter(lambda x: x < 1).apply(tf.data.experimental.assert_cardinality(1))
    yield "slices", D.from_tensor_slices([1, 2])
    yield "tensors", D.from_tensors([1, 2])
    yield "random", D.random(1)
    yield "descending", D.range(10, 0, -3)


@program(steps=1)
def cardinalities():
    return Built(fetches={name: d.cardinality() for name, d in counted()})


@program(steps=8)
def reduced_groups():
    """Sums by key, sparse batches of rows of any length, random numbers that differ from walk to walk."""
    experimental = tf.data.experimental
    reducer = experimental.Reducer(lambda k: (k * 0, np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1), lambda a, n: (a, n))
    sums = D.range(20).apply(experimental.group_by_reducer(lambda x: x % 3 - 1, reducer)).repeat()
    ragged = D.range(1, 6).map(lambda n: tf.range(n) + 1)
    sparse, tight = ragged.apply(experimental.dense_to_sparse_batch(2, [7])), ragged.apply(experimental.dense_to_sparse_batch(3, [None]))
    drawn = D.random(seed=3, rerandomize_each_iteration=True).take(3).repeat()
    walk = lambda d: initialized(tf1.data.make_initializable_iterator(d))
    sparse, tight = walk(sparse.repeat()), walk(tight.repeat())
    out = {"sums": walk(sums)[0], "drawn": walk(drawn), "dense": tf.sparse.to_dense(sparse), "tight": tf.sparse.to_dense(tight)}
    return Built(fetches=out | {"indices": sparse.indices, "shape": tight.dense_shape})


def renamed(t, op):
    """The op of a tensor under another name that it has or had."""
    attrs = {k: v for k, v in t.op.node_def.attr.items() if not k.startswith("_") and k != "metadata"}
    return t.graph.create_op(op, list(t.op.inputs), [t.dtype], attrs=attrs).outputs[0]


@program
def former_names():
    """Iterators, samplers and data sets by the names that they had in earlier releases."""
    shape = [tf.TensorShape([])]

    def first(dataset, types=(tf.int64,), shapes=shape):
        """The first element, by an iterator that is made in each step."""
        made = tf.raw_ops.AnonymousIteratorV2(output_types=list(types), output_shapes=shapes)
        with tf.control_dependencies([tf.raw_ops.MakeIterator(dataset=dataset, iterator=made.handle)]):
            element = tf.raw_ops.IteratorGetNext(iterator=made.handle, output_types=list(types), output_shapes=shapes)[0]
        with tf.control_dependencies([element]), tf.control_dependencies([tf.raw_ops.DeleteIterator(handle=made.handle, deleter=made.deleter)]):
            return tf.identity(element)

    experimental = tf.data.experimental
    reducer = experimental.Reducer(lambda k: np.int64(0), lambda s, x: s + x, lambda s: s)
    sums = D.range(20).apply(experimental.group_by_reducer(lambda x: x % 3, reducer))._variant_tensor
    sparse = D.range(1, 6).map(lambda n: tf.range(n) + 1).apply(experimental.dense_to_sparse_batch(2, [7]))._variant_tensor
    sparse = first(renamed(sparse, "ExperimentalDenseToSparseBatchDataset"), [tf.variant], [tf.TensorShape(None)])
    seen = tf.constant(rng().randint(0, 9, (8, 1)), tf.int64)
    samples = tf.raw_ops.ThreadUnsafeUnigramCandidateSampler(true_classes=seen, num_true=1, num_sampled=5, unique=True, range_max=9, seed=1, seed2=2)
    out = dict(zip("abc", samples))
    out["sums"] = first(renamed(sums, "GroupByReducerDataset"))
    out["sparse"] = tf.raw_ops.DeserializeSparse(serialized_sparse=sparse, dtype=tf.int64)[1]
    out["count"] = tf.raw_ops.ExperimentalDatasetCardinality(input_dataset=D.range(9).batch(2)._variant_tensor)
    return Built(fetches=out)
