"""Exports the graph that graph.toml trains on a cluster: a softmax regression in TensorFlow's own words.

    python export.py model.meta

It says where its parts belong, as a program for several workers does: the variables are on the parameter servers, in
turn, and the rest on a worker. The worker has no number, so that one file serves all of them: each process of trainerd
is one worker, and lets its session see no other.
"""

import sys

import tensorflow as tf

tf1 = tf.compat.v1


def main(path):
    with tf.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker")):
        tf1.set_random_seed(1)
        pixels = tf1.placeholder(tf.float32, [None, 64], "pixels")
        digit = tf1.placeholder(tf.int64, [None], "digit")

        weights = tf1.get_variable("weights", [64, 10], initializer=tf1.truncated_normal_initializer(stddev=0.1, seed=1))
        bias = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer())
        logits = tf.matmul(pixels, weights) + bias

        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=digit, logits=logits), name="loss")
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), digit), tf.float32), name="accuracy")
        tf1.summary.scalar("loss", loss)
        tf1.summary.scalar("accuracy", accuracy)

        step = tf1.train.get_or_create_global_step()
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step, name="train")
        tf1.train.Saver()
        tf1.train.export_meta_graph(path)


if __name__ == "__main__":
    main(sys.argv[1])
