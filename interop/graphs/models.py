"""Whole models as TensorFlow 1 programs write them: with its layers, samplers, and sparse features."""

import numpy as np
import tensorflow as tf
from tensorflow.python.keras.legacy_tf_layers import convolutional, core, pooling

from graphs.recorder import Built, program, rng, tf1, variable

xent = tf.nn.sparse_softmax_cross_entropy_with_logits


def glorot(seed):
    return tf1.glorot_uniform_initializer(seed=seed)


def descend(optimizer, loss, also=()):
    """Clips by the global norm, trains, and runs the collected updates."""
    step = tf1.train.get_or_create_global_step()
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients]
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies([loss, *also, *values, *updates]):
        return optimizer.apply_gradients(zip(gradients, variables), step)


@program
def layered_convnet():
    """Layers with kernel regularizers, batch normalisation by parts, dropout, moving averages of the weights."""
    x = tf1.placeholder(tf.float32, [None, 8, 8, 3], "x")
    y = tf1.placeholder(tf.int64, [None], "y")
    training = tf1.placeholder_with_default(True, [], "training")
    h = convolutional.conv2d(x, 6, 3, padding="same", use_bias=False, kernel_initializer=glorot(1))
    gamma, beta = variable("gamma", [6]), variable("beta", [6])
    mean, var = (tf1.get_variable(n, [6], initializer=tf1.ones_initializer(), trainable=False) for n in ("mean", "var"))
    batch = tf.nn.moments(h, [0, 1, 2])
    m, v = tf.cond(training, lambda: batch, lambda: (mean + 0.0, var + 0.0))
    with tf.control_dependencies([m, v]):  # which read the averages before this step's batch is in them
        for old, new in zip((mean, var), batch):
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(old, (old - new) * 0.1))
    h = pooling.max_pooling2d(tf.nn.elu(tf.nn.batch_normalization(h, m, v, beta, gamma, 1e-3)), 2, 2)
    h = convolutional.separable_conv2d(
        h, 5, 3, depthwise_initializer=glorot(2), pointwise_initializer=glorot(3), activation=tf.nn.relu6
    )
    h = convolutional.conv2d_transpose(h, 4, 3, strides=2, kernel_initializer=glorot(4))
    h = core.dropout(core.flatten(h), 0.4, training=training, seed=5)
    logits = core.dense(h, 4, kernel_initializer=glorot(6), kernel_regularizer=tf.nn.l2_loss)
    loss = tf.reduce_mean(xent(labels=y, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    average = tf1.train.ExponentialMovingAverage(0.9, tf1.train.get_or_create_global_step())
    train = descend(tf1.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True), loss, [accuracy])
    with tf.control_dependencies([train]):
        train = average.apply(tf1.trainable_variables())
    feed = lambda n: {
        "x:0": rng(n).uniform(-1, 1, [6, 8, 8, 3]).astype("f"),
        "y:0": rng(n).randint(0, 4, 6),
        "training:0": np.array(n % 2 == 0),
    }
    return Built(train, {"loss": loss, "accuracy": accuracy}, feed)


@program
def wide_and_deep():
    """Sparse features looked up in partitioned tables, crossed columns, two optimizers."""
    ids = tf1.sparse_placeholder(tf.int64, [None, None], "ids")
    weights = tf1.sparse_placeholder(tf.float32, [None, None], "weights")
    dense = tf1.placeholder(tf.float32, [None, 3], "dense")
    y = tf1.placeholder(tf.float32, [None, 1], "y")
    table = tf1.get_variable("table", [20, 4], initializer=glorot(1), partitioner=tf1.fixed_size_partitioner(3))
    wide = tf1.get_variable("wide", [20, 1], initializer=tf1.zeros_initializer())
    lookup = tf1.nn.embedding_lookup_sparse
    mean = lookup(table, ids, weights, combiner="mean", partition_strategy="div")
    root = lookup(table, ids, None, combiner="sqrtn", partition_strategy="div")
    deep = core.dense(tf.concat([mean, root, dense], 1), 6, tf.nn.relu, kernel_initializer=glorot(2))
    logits = core.dense(deep, 1, kernel_initializer=glorot(3)) + lookup(wide, ids, None, combiner="sum")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    both = tf1.trainable_variables()
    parts = [v for v in both if "wide" in v.name], [v for v in both if "wide" not in v.name]
    first = tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)
    second = tf1.train.AdagradOptimizer(0.1)
    pairs = first.compute_gradients(loss, parts[0]), second.compute_gradients(loss, parts[1])
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for pair in pairs for g, _ in pair]
    with tf.control_dependencies([loss, *values]):
        train = tf.group(
            first.apply_gradients(pairs[0]), second.apply_gradients(pairs[1], tf1.train.get_or_create_global_step())
        )

    def feed(n):
        at = np.array([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]], np.int64)
        shape = np.array([3, 3], np.int64)
        return {
            "ids/indices:0": at,
            "ids/shape:0": shape,
            "ids/values:0": rng(n).randint(0, 20, 6),
            "weights/indices:0": at,
            "weights/shape:0": shape,
            "weights/values:0": rng(n).uniform(0.5, 2, 6).astype("f"),
            "dense:0": rng(n).uniform(-1, 1, [3, 3]).astype("f"),
            "y:0": rng(n).randint(0, 2, [3, 1]).astype("f"),
        }

    return Built(train, {"loss": loss, "logits": logits}, feed)


def sampled(make):
    def build():
        ids, context = tf1.placeholder(tf.int32, [None], "ids"), tf1.placeholder(tf.int64, [None, 1], "context")
        table, weights, bias = variable("table", [30, 6]), variable("weights", [30, 6]), variable("bias", [30])
        h = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_mean(make(weights, bias, context, h, 8, 30))
        train = descend(tf1.train.GradientDescentOptimizer(0.5), loss)
        feed = lambda n: {"ids:0": rng(n).randint(0, 30, 8).astype("i"), "context:0": rng(n + 9).randint(0, 30, [8, 1])}
        return Built(train, {"loss": loss}, feed)

    return build


program(sampled(tf1.nn.nce_loss), name="skipgram_nce")
program(sampled(lambda *a: tf1.nn.sampled_softmax_loss(*a, seed=3)), name="skipgram_softmax")
program(sampled(lambda *a: tf1.nn.sampled_softmax_loss(*a, partition_strategy="div")), name="skipgram_graph_seed")


@program
def autoencoder():
    """A variational one: noise, tied weights, a decayed rate, an annealed weight."""
    x = tf1.placeholder(tf.float32, [None, 12], "x")
    w = variable("w", [12, 5])
    h = tf.nn.softplus(x @ w)
    mean, spread = core.dense(h, 3, kernel_initializer=glorot(1)), core.dense(h, 3, kernel_initializer=glorot(2))
    z = mean + tf.exp(0.5 * spread) * tf1.random_normal(tf.shape(mean), seed=4)
    back = core.dense(z, 5, tf.tanh, kernel_initializer=glorot(3)) @ tf.transpose(w)
    rebuilt = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=back), 1)
    divergence = -0.5 * tf.reduce_sum(1 + spread - tf.square(mean) - tf.exp(spread), 1)
    step = tf1.train.get_or_create_global_step()
    weight = tf.minimum(1.0, tf.cast(step, tf.float32) / 3)
    loss = tf.reduce_mean(rebuilt + weight * divergence)
    rate = tf1.train.cosine_decay(0.02, step, 10)
    train = descend(tf1.train.AdamOptimizer(rate, epsilon=1e-4), loss, [weight, rate])
    return Built(train, {"loss": loss, "weight": weight, "rate": rate}, lambda n: {"x:0": rng(n).uniform(0, 1, [5, 12]).astype("f")})


@program
def character_model():
    """Characters to the next one, with the state kept between the batches and truncated gradients."""
    from graphs.recurrent import cells, initializer

    text = tf1.placeholder(tf.int32, [2, 7], "text")
    embedding = tf1.get_variable("embedding", [11, 5], initializer=initializer(1), use_resource=True)
    stack = cells.MultiRNNCell([cells.LSTMCell(6, initializer=initializer(s)) for s in (2, 3)])
    state = stack.zero_state(2, tf.float32)
    kept = [tf1.get_variable(f"state{i}", [2, 6], initializer=tf1.zeros_initializer(), trainable=False) for i in range(4)]
    state = tf.nest.pack_sequence_as(state, [k + 0.0 for k in kept])
    hidden, last = tf1.nn.dynamic_rnn(stack, tf.nn.embedding_lookup(embedding, text[:, :-1]), initial_state=state)
    logits = tf.tensordot(hidden, tf.transpose(core.dense(tf.eye(6), 11, kernel_initializer=glorot(4))), [[2], [1]])
    loss = tf.reduce_mean(xent(labels=text[:, 1:], logits=logits))
    flat = tf.nest.flatten(last)
    train = descend(tf1.train.RMSPropOptimizer(0.01, epsilon=1e-3), loss, flat)
    with tf.control_dependencies([train]):
        train = tf.group(*[tf1.assign(k, v) for k, v in zip(kept, flat)])
    return Built(train, {"loss": loss}, lambda n: {"text:0": rng(n).randint(0, 11, [2, 7]).astype("i")})
