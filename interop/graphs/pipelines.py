"""Input pipelines in the graph: data sets with iterators, queues, readers, barriers."""

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, data_file, initialized, program, rng, tf1, trained, variable

Dataset = tf1.data.Dataset


def rows(n=10):
    return rng(5).uniform(-1, 1, [n, 4]).astype("f"), (np.arange(n) % 3).astype("i")


def one_shot(dataset):
    return tf1.data.make_one_shot_iterator(dataset).get_next()


@program(steps=7)
def shuffled_slices():
    """The usual: shuffle, repeat, map, batch, prefetch."""
    x, y = rows()
    dataset = Dataset.from_tensor_slices((x, y)).shuffle(6, seed=3).repeat()
    dataset = dataset.map(lambda a, b: (a * 2 + 1, b), num_parallel_calls=2).batch(4).prefetch(2)
    x, y = one_shot(dataset)
    logits = x @ variable("w", [4, 3]) + variable("b", [3])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return trained({"x": x, "y": y}, loss)


@program(steps=6)
def initializable():
    x, y = rows()
    w = variable("scale", [4])
    dataset = Dataset.from_tensor_slices({"x": tf.constant(x), "y": tf.constant(y)})
    dataset = dataset.filter(lambda d: d["y"] > 0).map(lambda d: (d["x"] + 1.5, d["y"]))
    dataset = dataset.apply(tf.data.experimental.shuffle_and_repeat(5, 3, seed=7)).batch(2, drop_remainder=True)
    x, y = initialized(tf1.data.make_initializable_iterator(dataset))
    return trained({"x": x * w, "y": y})


@program(steps=5)
def shuffles():
    """Every round in another order, and in the same one; with the seed of the graph."""
    numbers = Dataset.range(9)
    changing = numbers.shuffle(20, seed=1).repeat(9).batch(9)
    fixed = numbers.shuffle(4, seed=2, reshuffle_each_iteration=False).repeat(9).batch(9)
    graph_seed = numbers.shuffle(5).repeat(9).batch(7)
    two = numbers.shuffle(3, seed=5).shuffle(9, seed=6).repeat().batch(5)
    return Built(None, {"changing": one_shot(changing), "fixed": one_shot(fixed), "graph": one_shot(graph_seed), "two": one_shot(two)})


@program(steps=5)
def sampled_sets():
    """Classes of unequal size, drawn from at rates of their own."""
    few, many = Dataset.range(3).repeat(), Dataset.range(100, 120).repeat()
    balanced = Dataset.sample_from_datasets([few, many], [0.5, 0.5], seed=4).batch(6)
    logits = tf1.placeholder(tf.float32, [2, 5], "scores")
    draws = {
        "stateless": tf.random.stateless_categorical(logits, 7, [3, 4], tf.int32),
        "multinomial": tf1.multinomial(tf.cast(logits, tf.float64), 6, seed=4),
    }
    return Built(None, {"balanced": one_shot(balanced), **draws}, lambda n: {"scores:0": rng(n).normal(size=[2, 5]).astype("f")})


@program(steps=4)
def data_sets():
    r = Dataset.range
    pads = r(1, 9).map(lambda n: tf.fill([n % 4], n))
    words = Dataset.from_tensor_slices(["a b", "c", "d e f"]).map(lambda s: tf.strings.split([s]).values)
    out = {
        "zip": one_shot(Dataset.zip((r(5), r(10, 20)))),
        "concatenate": one_shot(r(2).concatenate(r(7, 9))),
        "take": one_shot(r(20).skip(3).take(9)),
        "shard": one_shot(r(20).shard(3, 1)),
        "padded": one_shot(pads.padded_batch(2, [None], tf.constant(-1, tf.int64))),
        "words": one_shot(words.repeat().padded_batch(2, [4], "-")),
        "flat": one_shot(r(1, 5).flat_map(lambda n: Dataset.from_tensors(n * 10).repeat(n))),
        "interleave": one_shot(r(1, 9).interleave(lambda n: Dataset.from_tensors(n).repeat(n), 3, 2).batch(3)),
        "unbatched": one_shot(Dataset.from_tensor_slices(np.arange(12).reshape(3, 4)).apply(tf.data.experimental.unbatch())),
        "scanned": one_shot(r(9).apply(tf.data.experimental.scan(np.int64(1), lambda s, n: (s * 2 + n, s + n)))),
        "while": one_shot(r(9).apply(tf.data.experimental.take_while(lambda n: n < 7))),
        "cached": one_shot(r(3).map(lambda n: n * n).cache().repeat()),
        "windows": one_shot(r(14).window(3, shift=2, stride=2).flat_map(lambda d: d.batch(3))),
        "batched": one_shot(r(20).apply(tf.data.experimental.map_and_batch(lambda n: n + 1, 3))),
        "cast": one_shot(Dataset.from_tensors(tf.constant([1.5, -2])).repeat().map(lambda v: tf.cast(v, tf.int32))),
    }
    return Built(None, out)


@program(steps=5)
def buckets():
    """Sequences of like lengths in one batch."""
    sequences = Dataset.range(1, 40).map(lambda n: tf.fill([n * 7 % 9 + 1], tf.cast(n, tf.float32)))
    bucketed = sequences.apply(
        tf.data.experimental.bucket_by_sequence_length(lambda s: tf.shape(s)[0], [4, 7], [3, 4, 2])
    )
    s = one_shot(bucketed)
    return trained({"s": s * variable("w", [1])})


@program(steps=5)
def records():
    """Examples in record files: read, parsed, augmented."""
    x, y = rows(12)
    paths = []
    for part in range(2):
        path = data_file(f"part-{part}", b"")
        options = tf.io.TFRecordOptions("GZIP" if part else "")
        with tf.io.TFRecordWriter(path, options) as writer:
            for n in range(part * 6, part * 6 + 6):
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=x[n])),
                    "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y[n]])),
                    "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"t%d" % t for t in range(n % 3)])),
                    "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[x[n].tobytes()])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        paths.append(path)

    def parse(text):
        spec = {
            "x": tf.io.FixedLenFeature([4], tf.float32),
            "y": tf.io.FixedLenFeature([], tf.int64),
            "raw": tf.io.FixedLenFeature([], tf.string),
        }
        parsed = tf.io.parse_single_example(text, spec)
        return parsed["x"] + tf.reshape(tf.io.decode_raw(parsed["raw"], tf.float32), [4]), parsed["y"]

    plain = tf1.data.TFRecordDataset(paths[0]).map(parse)
    packed = tf1.data.TFRecordDataset([paths[1]], compression_type="GZIP").map(parse)
    x, y = one_shot(plain.concatenate(packed).repeat().batch(5))
    tags = tf1.data.TFRecordDataset(paths[0]).batch(3).repeat()
    tags = one_shot(tags.map(lambda t: tf.io.parse_example(t, {"tags": tf.io.VarLenFeature(tf.string)})))["tags"]
    tags = tf1.sparse_tensor_to_dense(tags, "")
    return trained({"x": x @ variable("w", [4, 2]), "y": y, "tags": tags})


@program(steps=5)
def lines():
    """Comma-separated lines, skipping the header, and records of one length."""
    text = data_file("table.csv", b"a,b,c\n1,2.5,x\n2,,y\n3,4.5,z\n4,5.5,x\n")
    fixed = data_file("fixed.bin", b"HH" + bytes(range(24)) + b"F")
    table = tf1.data.TextLineDataset(text).skip(1).repeat()
    a, b, c = one_shot(table.map(lambda s: tf1.decode_csv(s, [[0], [1.5], [""]])).batch(2))
    words = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            data_file("words.txt", b"x\ny\n"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        1,
    )
    raw = one_shot(tf1.data.FixedLengthRecordDataset(fixed, 4, 2, 1).repeat())
    rows = tf.nn.embedding_lookup(variable("w", [3, 2]), words.lookup(c))
    return trained({"rows": rows * b[:, None], "a": a, "raw": tf.io.decode_raw(raw, tf.uint8)})


@program(steps=6)
def reinitializable():
    """One iterator for two data sets of one structure; feedable ones by their handles."""
    train, test = Dataset.range(5).repeat(), Dataset.range(100, 103).repeat()
    iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.make_initializer(test))
    handle = tf1.data.make_one_shot_iterator(train).string_handle()
    feedable = tf1.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
    return Built(None, {"switched": iterator.get_next(), "fed": feedable.get_next()})


@program(steps=5)
def random_maps():
    """Functions that draw numbers."""
    dataset = Dataset.range(30).map(lambda n: tf.cast(n, tf.float32) + tf1.random_uniform([2], seed=4))
    return Built(None, {"x": one_shot(dataset)})


@program(steps=3)
def queues():
    """Queues filled and emptied by the step itself."""
    x, y = rows(6)
    fifo = tf1.FIFOQueue(20, [tf.float32, tf.int32], [[4], []])
    mixed = tf1.RandomShuffleQueue(20, 0, tf.int32, [[]], seed=5)
    padding = tf1.PaddingFIFOQueue(20, tf.int32, [[None]])
    ranked = tf1.PriorityQueue(20, tf.string, [[]])
    fill = [
        fifo.enqueue_many([x, y]),
        mixed.enqueue_many([np.arange(6, dtype="i")]),
        padding.enqueue([tf.range(3)]),
        ranked.enqueue_many([np.array([3, 1, 2], np.int64), ["c", "a", "b"]]),
    ]
    with tf.control_dependencies(fill):
        more = padding.enqueue([tf.range(1)])
        a, b = fifo.dequeue_many(6)
        with tf.control_dependencies([a]):
            left = fifo.size()
        out = {"mixed": mixed.dequeue_many(5), "ranked": ranked.dequeue()[1], "left": left}
        with tf.control_dependencies([more]):
            out["padded"] = padding.dequeue_many(2)
    return trained({"y": a @ variable("w", [4, 2]), "b": b, **out})


@program(steps=2)
def accumulators():
    """Three gradients, one of them too old, and their mean."""
    step = tf1.get_variable("step", [], tf.int64, initializer=tf1.zeros_initializer(), trainable=False)
    dense = tf1.ConditionalAccumulator(tf.float32, [4], reduction_type="MEAN")
    total = tf1.ConditionalAccumulator(tf.float64, [2], reduction_type="SUM")
    rows = tf1.SparseConditionalAccumulator(tf.float32, [None, 2])
    w = variable("w", [4])
    old = dense.apply_grad(w * 100, -5)
    with tf.control_dependencies([old]):
        applied = [dense.apply_grad(w, step), dense.apply_grad(w * 2, step), total.apply_grad([1.0, 2], step)]
        first = rows.apply_grad([1, 4], tf.ones([2, 2]), [9, 2], local_step=step)
        with tf.control_dependencies([first, *applied]):
            second = rows.apply_grad([0, 4, 7], tf.ones([3, 2]) * 3, [9, 2], local_step=step)
    with tf.control_dependencies([second]):
        count = dense.num_accumulated()
        with tf.control_dependencies([count]):
            mean, sums, picked = dense.take_grad(2), total.take_grad(1), rows.take_indexed_slices_grad(2)
    with tf.control_dependencies([mean, sums, picked.values]):
        train = tf1.assign_add(step, 1).op
    return Built(train, {"mean": mean, "sum": sums, "count": count, "rows": picked.indices, "values": picked.values})


@program(steps=2)
def barriers():
    from tensorflow.python.ops import data_flow_ops

    barrier = data_flow_ops.Barrier([tf.float32, tf.string], [[2], []])
    keys = tf.constant(["k1", "k2", "k3"])
    first = barrier.insert_many(0, keys, [[1.0, 2], [3, 4], [5, 6]])
    with tf.control_dependencies([first]):
        incomplete = barrier.incomplete_size()
        with tf.control_dependencies([incomplete]):
            second = barrier.insert_many(1, keys, ["a", "b", "c"])
    with tf.control_dependencies([second]):
        ready = barrier.ready_size()
        with tf.control_dependencies([ready]):
            index, names, values = barrier.take_many(3)
    return Built(None, {"incomplete": incomplete, "ready": ready, "index": index, "names": names, "a": values[0], "b": values[1]})


@program
def savers():
    """Checkpoints of the first format, written and read in the graph, whole and in parts."""
    w = variable("w", [4, 2])
    parted = tf1.get_variable(
        "parted", [6, 2], initializer=tf1.ones_initializer(), partitioner=tf1.fixed_size_partitioner(3)
    )
    path = data_file("v1", b"")
    saver = tf1.train.Saver([w], write_version=tf1.train.SaverDef.V1)
    saved = tf.raw_ops.SaveSlices(
        filename=path, tensor_names=["w", "half"], shapes_and_slices=["4 2 0,4:-", "4 2 2,2:-"], data=[w, w[2:]]
    )
    plain = tf.raw_ops.Save(filename=path + "-plain", tensor_names=["w", "words"], data=[w * 2, tf.constant(["a", "b"])])
    with tf.control_dependencies([saved, plain]):
        back = tf.raw_ops.Restore(file_pattern=path + "-plain", tensor_name="w", dt=tf.float32)
        part = tf.raw_ops.RestoreSlice(file_pattern=path, tensor_name="w", shape_and_slice="4 2 1,2:0,1", dt=tf.float32)
        words = tf.raw_ops.Restore(file_pattern=path + "-plain", tensor_name="words", dt=tf.string)
    sharded = tf1.train.Saver({"parted": parted, "w": w}, sharded=True, write_version=tf1.train.SaverDef.V2)
    assert saver.saver_def and sharded.saver_def
    return trained({"y": w * 2.0 + tf.convert_to_tensor(parted)[:4], "back": back, "part": part, "words": words})
