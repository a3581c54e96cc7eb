"""Text as the layers of Keras turn it into features: words, n-grams of them, counts of these."""

import numpy as np
import tensorflow as tf

from graphs.recorder import program, tf1, trained, variable

LINES = ["The cat sat on the mat.", "A dog!", "", "the end, the very end of it", "cat"]


@program(steps=3)
def text_features():
    """What TextVectorization does to lines of text: words, two-grams with and without pads, counts by line."""
    lines = tf1.placeholder(tf.string, [None], "lines")
    text = tf.strings.regex_replace(tf.strings.lower(lines), "[^a-z ]", "")
    words = tf.strings.split(text)
    grams = tf.strings.ngrams(words, (1, 2), " ")
    padded = tf.raw_ops.StringNGrams(
        data=words.values,
        data_splits=words.row_splits,
        separator="_",
        ngram_widths=[3, 2],
        left_pad="<",
        right_pad=">",
        pad_width=-1,
        preserve_short_sequences=False,
    )
    short = tf.raw_ops.StringNGrams(
        data=words.values,
        data_splits=tf.cast(words.row_splits, tf.int32),
        separator="+",
        ngram_widths=[4],
        left_pad="L",
        right_pad="R",
        pad_width=1,
        preserve_short_sequences=True,
    )
    ids = tf.strings.to_hash_bucket_fast(grams.values, 12)
    weights = tf.random.stateless_uniform(tf.shape(ids), [1, 2])
    common = dict(splits=grams.row_splits, values=ids, size=tf.constant(10, tf.int64))
    counts = tf.raw_ops.RaggedBincount(weights=weights, **common)
    seen = tf.raw_ops.RaggedBincount(weights=tf.zeros([0]), binary_output=True, **common)
    sparse = grams.with_values(ids).to_sparse()
    rows = tf.raw_ops.SparseBincount(
        indices=sparse.indices,
        values=sparse.values,
        dense_shape=sparse.dense_shape,
        size=tf.constant(12, tf.int64),
        weights=tf.zeros([0], tf.int32),
    )
    kernel = variable("kernel", [10, 3], resource=True)
    with tf.control_dependencies([tf.raw_ops.DisableCopyOnRead(resource=kernel.handle)]):
        h = tf.tanh(tf.matmul(counts + seen, kernel))
    outputs = {"h": h, "rows": rows, "padded": padded.ngrams, "padded_splits": padded.ngrams_splits}
    return trained(
        {**outputs, "short": short.ngrams, "short_splits": short.ngrams_splits},
        tf.reduce_mean(tf.square(h)),
        feeds=lambda n: {"lines:0": np.array(LINES[n:] + LINES[:n], object)},
    )
