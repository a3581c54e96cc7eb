"""Writes the MetaGraphs of the larger nets, with TensorFlow. Run: python make_nets.py

Each is a multi-layer perceptron with rectifiers, softmax cross entropy and
gradient descent, as a TensorFlow 1 program builds it. The initial values are
a function of the seed, which the graph holds.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf1 = tf.compat.v1
here = os.path.dirname(os.path.abspath(__file__))

NETS = {"mlp784": [784, 256, 10], "mlp1024": [1024, 1024, 1024, 10]}


def build(sizes):
    tf1.set_random_seed(7)
    step = tf1.train.get_or_create_global_step()
    x = tf1.placeholder(tf.float32, [None, sizes[0]], "x")
    y = tf1.placeholder(tf.int64, [None], "y")
    h = x
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        w = tf1.get_variable("w%d" % i, [n, m], initializer=tf1.truncated_normal_initializer(stddev=n ** -.5, seed=i))
        b = tf1.get_variable("b%d" % i, [m], initializer=tf1.zeros_initializer())
        h = tf.nn.bias_add(tf.matmul(h, w), b)
        if i < len(sizes) - 2:
            h = tf.nn.relu(h)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h), name="loss")
    tf1.train.GradientDescentOptimizer(.01).minimize(loss, step, name="train")
    tf1.global_variables_initializer()


for name, sizes in NETS.items():
    with tf.Graph().as_default():
        build(sizes)
        tf1.train.export_meta_graph(os.path.join(here, "graphs", name + ".meta"), clear_devices=True, strip_default_attrs=True)
