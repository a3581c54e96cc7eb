"""Exports the graph that graph.toml trains: a softmax regression in TensorFlow's own words.

    python export.py model.meta

Any program that builds a graph can end like this one: what trainerd needs is in the collections that TensorFlow's
optimizers, savers and summaries fill by themselves. TensorFlow is not needed any more after that.
"""

import sys

import tensorflow as tf

tf1 = tf.compat.v1


def main(path):
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        pixels = tf1.placeholder(tf.float32, [None, 64], "pixels")
        digit = tf1.placeholder(tf.int64, [None], "digit")
        keep = tf1.placeholder_with_default(tf.constant(1.0), [], "keep")

        weights = tf1.get_variable("weights", [64, 10], initializer=tf1.truncated_normal_initializer(stddev=0.1, seed=1))
        bias = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer())
        logits = tf.matmul(tf1.nn.dropout(pixels, rate=1 - keep, seed=2), weights) + bias

        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=digit, logits=logits), name="loss")
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), digit), tf.float32), name="accuracy")
        tf1.summary.scalar("loss", loss)
        tf1.summary.scalar("accuracy", accuracy)

        step = tf1.train.get_or_create_global_step()
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step, name="train")
        tf1.train.Saver()
        tf1.train.export_meta_graph(path, clear_devices=True)


if __name__ == "__main__":
    main(sys.argv[1])
