"""tf.data reads what the program next to this reads.

    tf_input.py generate RACE --dir DIR    the files, and the pipeline as a graph for the other side
    tf_input.py read RACE --dir DIR        the pipeline, from its first element to its last
    tf_input.py train RACE --dir DIR       steps of a training that the pipeline feeds

Pipelines are written as tf.data's guides write them: AUTOTUNE wherever that can
be given, and a prefetch at the end.
"""

import argparse
import glob
import json
import os
import resource
import sys
import time

try:
    import tensorflow as tf
except ImportError:
    print("tensorflow is not installed", file=sys.stderr)
    sys.exit(77)

import files

tf1 = tf.compat.v1
AUTOTUNE = tf.data.AUTOTUNE


def paths(folder, pattern):
    return sorted(glob.glob(os.path.join(folder, pattern)))


def pictures(pattern, decode, batch):
    def make(folder):
        ds = tf.data.Dataset.from_tensor_slices(paths(folder, pattern))
        ds = ds.map(lambda name: decode(tf.io.read_file(name)), num_parallel_calls=AUTOTUNE)
        return ds.batch(batch).prefetch(AUTOTUNE)

    return make


def augmented(folder):
    """What trainings of image classifiers do."""
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}

    def prepare(record):
        parsed = tf.io.parse_single_example(record, features)
        image = tf.image.resize(tf.io.decode_jpeg(parsed["image/encoded"], channels=3), [256, 256])
        image = tf.image.random_crop(image, [224, 224, 3], seed=1)
        image = tf.image.random_flip_left_right(image, seed=2)
        return image / 255.0, parsed["image/class/label"]

    ds = tf.data.Dataset.from_tensor_slices(paths(folder, "train-*"))
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)
    ds = ds.shuffle(64, seed=3).map(prepare, num_parallel_calls=AUTOTUNE)
    return ds.batch(32).prefetch(AUTOTUNE)


def numbers(columns, batch):
    """A table of numbers, line by line."""

    def make(folder):
        def parse(line):
            return tf.stack(tf.io.decode_csv(line, [[0.0]] * columns))

        ds = tf.data.TextLineDataset(os.path.join(folder, "table.csv")).skip(1)
        return ds.map(parse, num_parallel_calls=AUTOTUNE).batch(batch).prefetch(AUTOTUNE)

    return make


def numbers_batched(columns, batch):
    """The same, a batch of lines at a time."""

    def make(folder):
        def parse(lines):
            return tf.stack(tf.io.decode_csv(lines, [[0.0]] * columns), axis=1)

        ds = tf.data.TextLineDataset(os.path.join(folder, "table.csv")).skip(1).batch(batch)
        return ds.map(parse, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)

    return make


def words(folder):
    def parse(line):
        required = [tf.zeros([0], tf.int64), tf.zeros([0], tf.string)]
        return tf.io.decode_csv(line, required + [[b"none"]] * 6 + [[0.0]] * 8)

    ds = tf.data.TextLineDataset(os.path.join(folder, "table.csv")).skip(1)
    return ds.map(parse, num_parallel_calls=AUTOTUNE).batch(256).prefetch(AUTOTUNE)


def records(compression):
    def make(folder):
        ds = tf.data.TFRecordDataset(os.path.join(folder, "train.tfrecord"), compression_type=compression)
        return ds.batch(256).prefetch(AUTOTUNE)

    return make


FEW = {
    "x": tf.io.FixedLenFeature([32], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "weight": tf.io.FixedLenFeature([], tf.float32, 1.0),
    "ids": tf.io.VarLenFeature(tf.int64),
    "name": tf.io.FixedLenFeature([], tf.string),
}
MANY = {f"f{k:03d}": tf.io.FixedLenFeature([], tf.float32) for k in range(100)}


def examples(features, compression=None):
    """Examples parsed a batch at a time."""

    def make(folder):
        ds = tf.data.TFRecordDataset(os.path.join(folder, "train.tfrecord"), compression_type=compression).batch(128)
        ds = ds.map(lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=AUTOTUNE)
        return ds.prefetch(AUTOTUNE)

    return make


def single_examples(features):
    """Examples parsed one by one."""

    def make(folder):
        ds = tf.data.TFRecordDataset(os.path.join(folder, "train.tfrecord"))
        ds = ds.map(lambda record: tf.io.parse_single_example(record, features), num_parallel_calls=AUTOTUNE)
        return ds.batch(128).prefetch(AUTOTUNE)

    return make


def shuffled(folder):
    ds = tf.data.TFRecordDataset(os.path.join(folder, "train.tfrecord"))
    ds = ds.map(lambda record: tf.io.decode_raw(record, tf.float32), num_parallel_calls=AUTOTUNE)
    return ds.shuffle(10000, seed=1).batch(128).prefetch(AUTOTUNE)


def lines(folder):
    return tf.data.TextLineDataset(os.path.join(folder, "text.txt")).batch(256).prefetch(AUTOTUNE)


def jpeg(data):
    return tf.io.decode_jpeg(data, channels=3)


def png(channels):
    return lambda data: tf.io.decode_png(data, channels=channels)


def in_folder(write, *args):
    return lambda folder, share: write(folder, int(args[0] * share), *args[1:])


# By race: the files for a share of the full size, and the pipeline.
RACES = {
    "jpeg": (in_folder(files.write_jpegs, 256, False), pictures("*.jpg", jpeg, 16)),
    "jpeg-progressive": (in_folder(files.write_jpegs, 128, True), pictures("*.jpg", jpeg, 16)),
    "jpeg-augmented": (in_folder(files.write_image_records, 256), augmented),
    "png-28": (in_folder(files.write_pngs, 10000, 28, 28, 1), pictures("*.png", png(1), 128)),
    "png-224": (in_folder(files.write_pngs, 256, 224, 224, 3), pictures("*.png", png(3), 16)),
    "csv-20": (in_folder(files.write_table, 100000, 20), numbers(20, 256)),
    "csv-20-batched": (in_folder(files.write_table, 100000, 20), numbers_batched(20, 256)),
    "csv-1000": (in_folder(files.write_table, 4000, 1000), numbers(1000, 64)),
    "csv-words": (in_folder(files.write_words, 60000), words),
    "records": (in_folder(files.write_examples, 60000, 5, None), records(None)),
    "records-gzip": (in_folder(files.write_examples, 60000, 5, "GZIP"), records("GZIP")),
    "examples": (in_folder(files.write_examples, 60000, 5, None), examples(FEW)),
    "examples-gzip": (in_folder(files.write_examples, 60000, 5, "GZIP"), examples(FEW, "GZIP")),
    "examples-single": (in_folder(files.write_examples, 60000, 5, None), single_examples(FEW)),
    "examples-100": (in_folder(files.write_examples, 20000, 100, None), examples(MANY)),
    "examples-100-single": (in_folder(files.write_examples, 20000, 100, None), single_examples(MANY)),
    "shuffle": (in_folder(files.write_small_records, 200000), shuffled),
    "lines": (in_folder(files.write_lines, 300000), lines),
}


def components(element):
    """The tensors of an element, those of sparse ones included."""
    return tf.nest.flatten(element, expand_composites=True)


def checksum(element):
    """A sum of all bits of an element that does not depend on the order of elements."""
    total = tf.constant(0, tf.int64)
    for t in components(element):
        if t.dtype == tf.string:
            t = tf.strings.to_hash_bucket_fast(t, 1 << 40)
        elif t.dtype == tf.float32:
            t = tf.bitcast(t, tf.int32)
        total += tf.reduce_sum(tf.cast(t, tf.int64))
    return total


# The numbers of random augmentations depend on the order in which threads draw them.
UNORDERED = ("jpeg-augmented",)


def record(race, folder):
    """Writes the pipeline as a graph: init_input, take and checksum."""
    with tf1.Graph().as_default() as graph:
        tf1.set_random_seed(1)
        iterator = tf1.data.make_initializable_iterator(RACES[race][1](folder))
        element = iterator.get_next()
        tf.group(iterator.initializer, name="init_input")
        tf.group(*components(element), name="take")
        tf.identity(total(race, element), name="checksum")
        tf1.train.export_meta_graph(os.path.join(folder, "graph.meta"), graph=graph)


def total(race, element):
    if race in UNORDERED:
        return tf.reduce_sum(tf.cast(components(element)[-1], tf.int64))
    return checksum(element)


def multilayer(x):
    """A net for the rows of a table."""
    labels = tf.cast(x[:, 0] > 0, tf.int32)
    for i, n in enumerate((256, 256, 2)):
        x = dense(x / 100.0 if i == 0 else tf.nn.relu(x), n)
    return x, labels


def convolutions(image, labels):
    """A small net for pictures."""
    x = image
    for i, (channels, size, stride) in enumerate(((16, 7, 4), (32, 3, 2), (64, 3, 2))):
        w = tf1.get_variable(f"conv{i}", [size, size, x.shape[-1], channels], initializer=tf1.glorot_uniform_initializer(seed=i))
        x = tf.nn.relu(tf.nn.conv2d(x, w, stride, "SAME"))
    return dense(tf.reduce_mean(x, [1, 2]), 1000), labels


def dense(x, n):
    with tf1.variable_scope(None, "dense"):
        w = tf1.get_variable("w", [x.shape[-1], n], initializer=tf1.glorot_uniform_initializer(seed=n))
        return tf.matmul(x, w) + tf1.get_variable("b", [n], initializer=tf1.zeros_initializer())


TRAININGS = {"csv-20": multilayer, "jpeg-augmented": convolutions}


def record_training(race, folder, name, held):
    """Writes a training that is fed by the pipeline, or always by its first element."""
    with tf1.Graph().as_default() as graph:
        tf1.set_random_seed(1)
        ds = RACES[race][1](folder)
        ds = ds.take(1).cache().repeat() if held else ds.repeat()
        iterator = tf1.data.make_initializable_iterator(ds)
        element = iterator.get_next()
        logits, labels = TRAININGS[race](*(element if isinstance(element, tuple) else (element,)))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        tf1.train.AdamOptimizer(1e-3).minimize(loss, name="train")
        tf.group(tf1.global_variables_initializer(), iterator.initializer, name="start")
        tf1.train.export_meta_graph(os.path.join(folder, name), graph=graph)


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def generate(args):
    RACES[args.race][0](args.dir, args.share)
    record(args.race, args.dir)
    if args.race in TRAININGS:
        record_training(args.race, args.dir, "train.meta", False)
        record_training(args.race, args.dir, "held.meta", True)


def read(args):
    """Adds up all elements once, as work, and then only takes them."""
    ds = RACES[args.race][1](args.dir)
    summed, elements = 0, 0
    for element in ds:
        summed += int(total(args.race, element))
        elements += 1
    begin, used = time.perf_counter(), cpu()
    for _ in range(args.times):
        for _ in ds:
            pass
    seconds, used = time.perf_counter() - begin, cpu() - used
    report(f"{args.race}: {args.times} times {elements} elements, sum {summed % 2**64}", seconds, used)


def train(args):
    """Makes steps on the pipeline's elements, and as many on its first."""
    held, held_cpu = steps(args, "held.meta")
    seconds, used = steps(args, "train.meta")
    report(f"{args.race}: {args.steps} steps", seconds, used, held_seconds=held, held_cpu_seconds=held_cpu, slowdown=seconds / held)


def steps(args, graph):
    with tf1.Graph().as_default(), tf1.Session() as sess:
        tf1.train.import_meta_graph(os.path.join(args.dir, graph))
        sess.run("start")
        step = sess.make_callable("train")
        for _ in range(WARM_UP):
            step()
        begin, used = time.perf_counter(), cpu()
        for _ in range(args.steps):
            step()
        return time.perf_counter() - begin, cpu() - used


WARM_UP = 5


def report(work, seconds, used, **metrics):
    print(json.dumps({"work": work, "seconds": seconds, "cpu_seconds": used, "metrics": metrics}))


COMMANDS = {"generate": generate, "read": read, "train": train}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command", choices=COMMANDS)
    p.add_argument("race", choices=RACES)
    p.add_argument("--dir", required=True)
    p.add_argument("--share", type=float, default=1, help="of the full number of files or rows")
    p.add_argument("--times", type=int, default=3, help="that the pipeline is read")
    p.add_argument("--steps", type=int, default=50, help="of the training")
    args = p.parse_args()
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
