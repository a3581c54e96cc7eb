"""The files that the input races read: pictures, tables, records and text.

All of them come from seeds, so that every run reads the same. The pictures are
made to compress like photographs: smooth shapes, texture and a little noise.
"""

import csv
import os

import numpy as np
import tensorflow as tf

HEIGHT, WIDTH = 375, 500


def picture(seed, height, width, channels):
    """A picture whose details get weaker as they get smaller, as in photographs."""
    random = np.random.default_rng(seed)
    total = np.zeros((height, width, channels), np.float32)
    for cells, strength in ((3, 70), (9, 35), (30, 16), (90, 8)):
        shape = (max(2, cells * height // max(height, width)), cells, channels)
        coarse = random.normal(0, strength, shape).astype(np.float32)
        total += tf.image.resize(coarse, (height, width), "bicubic").numpy()
    total += random.normal(0, 4, (height, width, 1))
    return np.clip(total + 128, 0, 255).astype(np.uint8)


def write_jpegs(folder, n, progressive):
    kind = "progressive" if progressive else ""
    for i in range(n):
        data = tf.io.encode_jpeg(picture(i, HEIGHT, WIDTH, 3), format="rgb", quality=90, progressive=progressive)
        tf.io.write_file(os.path.join(folder, f"{kind}{i:04d}.jpg"), data)


def write_pngs(folder, n, height, width, channels):
    for i in range(n):
        data = tf.io.encode_png(picture(i % 64, height, width, channels))
        tf.io.write_file(os.path.join(folder, f"{i:05d}.png"), data)


def write_image_records(folder, n):
    for shard in range(4):
        with tf.io.TFRecordWriter(os.path.join(folder, f"train-{shard}")) as out:
            for i in range(shard, n, 4):
                data = tf.io.encode_jpeg(picture(i, HEIGHT, WIDTH, 3), format="rgb", quality=90).numpy()
                out.write(example({"image/encoded": [data], "image/class/label": [i % 1000], "image/filename": [b"%d.jpg" % i],
                                   "image/object/bbox/xmin": [0.25, 0.5], "image/object/bbox/ymin": [0.125, 0.5]}))  # fmt: skip


def example(features):
    """A serialized tf.train.Example."""
    made = {}
    for name, values in features.items():
        if isinstance(values[0], bytes):
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], int):
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def write_table(folder, rows, columns):
    """Numbers as programs print them: some with four digits, some with all."""
    random = np.random.default_rng(columns)
    with open(os.path.join(folder, "table.csv"), "w") as out:
        out.write(",".join(f"c{i}" for i in range(columns)) + "\n")
        for _ in range(rows):
            values = random.normal(0, 100, columns)
            out.write(",".join(f"{v:.4f}" if i % 2 else repr(float(np.float32(v))) for i, v in enumerate(values)) + "\n")


WORDS = ["red", "light green", "blue, dark", 'so-called "teal"', "", "black"]


def write_words(folder, rows):
    """A table of words, some in quotes, and of numbers, a tenth of which are missing."""
    random = np.random.default_rng(1)
    with open(os.path.join(folder, "table.csv"), "w", newline="") as out:
        w = csv.writer(out, lineterminator="\n")
        w.writerow([f"c{i}" for i in range(16)])
        for i in range(rows):
            words = [WORDS[k] for k in random.integers(0, len(WORDS), 6)]
            numbers = ["" if random.random() < 0.1 else f"{v:.3f}" for v in random.normal(0, 10, 8)]
            w.writerow([i, f"name {i}, the {i % 7}th"] + words + numbers)


def write_lines(folder, n):
    random = np.random.default_rng(2)
    words = ["".join(chr(97 + c) for c in random.integers(0, 26, random.integers(2, 10))) for _ in range(5000)]
    with open(os.path.join(folder, "text.txt"), "w") as out:
        for _ in range(n):
            out.write(" ".join(words[k] for k in random.integers(0, 5000, random.integers(3, 25))) + "\n")


def write_examples(folder, n, features, compression):
    random = np.random.default_rng(features)
    with tf.io.TFRecordWriter(os.path.join(folder, "train.tfrecord"), compression) as out:
        for i in range(n):
            if features == 100:
                out.write(example({f"f{k:03d}": [float(v)] for k, v in enumerate(random.normal(0, 1, 100))}))
                continue
            out.write(example({
                "x": [float(v) for v in random.normal(0, 1, 32)], "label": [i % 10], "weight": [1.5],
                "ids": [int(v) for v in random.integers(0, 50000, random.integers(1, 40))], "name": [b"example %d" % i]}))  # fmt: skip


def write_small_records(folder, n):
    random = np.random.default_rng(3)
    with tf.io.TFRecordWriter(os.path.join(folder, "train.tfrecord")) as out:
        for _ in range(n):
            out.write(random.bytes(40))
