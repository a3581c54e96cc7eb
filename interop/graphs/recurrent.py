"""Networks that run over time, as TensorFlow 1 programs write them: cells, dynamic_rnn, loops in loops, sequence to
sequence."""

import tensorflow as tf
from tensorflow.python.keras import layers as keras_layers
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl
from tensorflow.python.keras.legacy_tf_layers import core

from graphs.flow import as_functions
from graphs.recorder import Built, program, rng, tf1, trained, variable

# tf.compat.v1 of this release has lost its cells and layers, but not the package.
cells = rnn_cell_impl


def feeds(n):
    return {"x:0": rng(n).uniform(-1, 1, [3, 5, 4]).astype("f"), "lengths:0": rng(n).randint(1, 6, 3).astype("i")}


def inputs():
    return tf1.placeholder(tf.float32, [None, 5, 4], "x"), tf1.placeholder(tf.int32, [None], "lengths")


def initializer(seed):
    return tf1.random_uniform_initializer(-0.5, 0.5, seed=seed)


def cell(kind, units, seed=1, **kw):
    """A cell whose weights come from the seed."""
    make = {"lstm": cells.LSTMCell, "gru": cells.GRUCell, "rnn": cells.BasicRNNCell, "basic": cells.BasicLSTMCell}[kind]
    if kind == "lstm":
        kw["initializer"] = initializer(seed)
    if kind == "gru":
        kw["kernel_initializer"] = initializer(seed)
    return make(units, **kw)


def rolled(kind, **kw):
    def build():
        x, lengths = inputs()
        with tf1.variable_scope("net", initializer=initializer(2)):
            outputs, state = tf1.nn.dynamic_rnn(cell(kind, 6, **kw), x, lengths, dtype=tf.float32)
        flat = tf.nest.flatten(state)
        return trained({"outputs": outputs, **{f"state{i}": s for i, s in enumerate(flat)}}, feeds=feeds)

    return build


for kind, kw in [("lstm", {}), ("gru", {}), ("rnn", {}), ("basic", {})]:
    program(rolled(kind, **kw), name=f"dynamic_{kind}_v1")
    program(as_functions(rolled(kind, **kw)), name=f"dynamic_{kind}_v2")
program(rolled("lstm", use_peepholes=True, num_proj=5, cell_clip=0.4), name="dynamic_lstm_peepholes")


@program
def stacked_lstm():
    """Two layers with dropout between, time first, clipped by the global norm."""
    x, lengths = inputs()
    layers = [cells.DropoutWrapper(cell("lstm", 5, seed), output_keep_prob=0.8, seed=seed) for seed in (1, 2)]
    outputs, state = tf1.nn.dynamic_rnn(
        cells.MultiRNNCell(layers), tf.transpose(x, [1, 0, 2]), lengths, dtype=tf.float32, time_major=True
    )
    logits = core.dense(outputs, 3, kernel_initializer=initializer(7))
    loss = tf.reduce_mean(tf.square(logits)) + tf.reduce_sum(state[1].h)
    step = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.AdamOptimizer(0.01, epsilon=1e-4)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, norm = tf.clip_by_global_norm(gradients, 0.5)
    return Built(optimizer.apply_gradients(zip(gradients, variables), step), {"loss": loss, "norm": norm}, feeds)


@program
def bidirectional():
    x, lengths = inputs()
    outputs, states = tf1.nn.bidirectional_dynamic_rnn(
        cell("gru", 4, 1), cell("gru", 4, 2), x, sequence_length=lengths, dtype=tf.float32
    )
    return trained({"forward": outputs[0], "backward": outputs[1], "state": states[1]}, feeds=feeds)


@program
def static_recurrent():
    x, lengths = inputs()
    outputs, state = tf1.nn.static_rnn(cell("lstm", 4), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths)
    return trained({"last": outputs[-1], "c": state.c}, feeds=feeds)


def stateful():
    """The state of a batch is where the next one starts."""
    x, lengths = inputs()
    lstm = cell("lstm", 4)
    c, h = (tf1.get_variable(n, [3, 4], initializer=tf1.zeros_initializer(), trainable=False) for n in "ch")
    outputs, state = tf1.nn.dynamic_rnn(lstm, x, lengths, cells.LSTMStateTuple(c, h))
    built = trained({"outputs": outputs, "c": state.c + 0.0, "h": state.h + 0.0}, feeds=feeds)
    with tf.control_dependencies([built.train]):
        built.train = tf.group(tf1.assign(c, state.c), tf1.assign(h, state.h))
    return built


program(stateful)


def nested_loops():
    x, _ = inputs()
    w = variable("w", [4, 4])

    def outer(i, v):
        def inner(j, u):
            return j + 1, tf.tanh(tf.matmul(u, w)) + x[:, i] * tf.cast(j, tf.float32)

        _, v = tf1.while_loop(lambda j, u: j < i + 1, inner, [0, v])
        return i + 1, v * 0.9

    _, v = tf1.while_loop(lambda i, v: i < 4, outer, [0, x[:, 0]])
    return trained({"v": v}, feeds=feeds)


def conditions_in_loops():
    x, _ = inputs()
    w = variable("w", [4])

    def body(i, v):
        even = tf.equal(i % 2, 0)
        return i + 1, v + tf.cond(even, lambda: tf.reduce_sum(x[:, i] * w), lambda: tf.reduce_sum(tf.sin(w) * v))

    positive = tf.reduce_sum(x) > 0
    looped = lambda: tf1.while_loop(lambda i, v: i < 5, body, [0, 0.0])[1]
    y = tf.cond(positive, looped, lambda: tf.reduce_sum(w * 3))
    return trained({"y": y, "again": looped()}, feeds=feeds)


def arrays():
    """Arrays of tensors in all their uses."""
    x, _ = inputs()
    w = variable("w", [4])
    parts = tf.TensorArray(tf.float32, 5, infer_shape=False).unstack(tf.transpose(x, [1, 0, 2]))

    def body(i, out):
        return i + 1, out.write(i, parts.read(i) * w + tf.cast(i, tf.float32))

    _, out = tf1.while_loop(lambda i, _: i < 5, body, [0, tf.TensorArray(tf.float32, 5)])
    split = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.reshape(x, [-1, 4])[:6] * w, [2, 4])
    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
    grown = grown.write(0, w).write(1, w * 2)
    twice = grown.read(0) + grown.read(0) * grown.read(1)
    return trained(
        {"stack": out.stack(), "concat": split.concat(), "twice": twice, "gather": grown.gather([1, 0])}, feeds=feeds
    )


def searched():
    """Steps until a norm is small enough: as many as the values want."""
    x, _ = inputs()
    w = variable("w", [4, 4], scale=0.4)
    n, v = tf1.while_loop(
        lambda n, v: tf.logical_and(tf.norm(v) > 0.5, n < 40), lambda n, v: (n + 1, v @ w), [0, x[:, 0]]
    )
    return trained({"n": n, "v": v}, feeds=feeds)


for build in (nested_loops, conditions_in_loops, arrays, searched):
    program(build, name=build.__name__ + "_v1")
    program(as_functions(build), name=build.__name__ + "_v2")


def counted():
    """A loop with effects: variables change in each iteration, and a maximum of iterations."""
    count = tf1.get_variable("count", [], tf.int32, initializer=tf1.zeros_initializer(), trainable=False)
    log = tf1.get_variable("log", [4], initializer=tf1.zeros_initializer(), trainable=False, use_resource=True)

    def body(i):
        change = tf1.assign_add(count, i + 1), tf1.scatter_add(log, i, tf.cast(i, tf.float32) + 0.5)
        with tf.control_dependencies(change):
            return i + 1

    return Built(tf1.while_loop(lambda i: i < 10, body, [0], maximum_iterations=3, parallel_iterations=1), {})


program(counted)


@program
def translation():
    """Sequence to sequence: an encoder, a decoder with attention, a masked loss, greedy decoding in a loop."""
    source, target = tf1.placeholder(tf.int32, [None, 5], "source"), tf1.placeholder(tf.int32, [None, 6], "target")
    embedding = variable("embedding", [9, 4])
    encoder, decoder = cell("gru", 6, 3), cell("gru", 6, 4)
    with tf1.variable_scope("encoder"):
        memory, state = tf1.nn.dynamic_rnn(encoder, tf.nn.embedding_lookup(embedding, source), dtype=tf.float32)
    keys = tf.einsum("bth,hk->btk", memory, variable("keys", [6, 6]))
    out = variable("out", [12, 9])

    def attend(h):
        weights = tf.nn.softmax(tf.reduce_sum(keys * h[:, None], 2))
        return tf.concat([h, tf.reduce_sum(memory * weights[:, :, None], 1)], 1) @ out

    with tf1.variable_scope("decoder"):
        hidden, _ = tf1.nn.dynamic_rnn(
            decoder, tf.nn.embedding_lookup(embedding, target[:, :-1]), initial_state=state, dtype=tf.float32
        )
    logits = tf.transpose(tf.map_fn(attend, tf.transpose(hidden, [1, 0, 2])), [1, 0, 2])
    labels = target[:, 1:]
    mask = tf.cast(tf.not_equal(labels, 0), tf.float32)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_sum(entropy * mask) / (tf.reduce_sum(mask) + 1e-6)

    def step(t, word, h, words):
        with tf1.variable_scope("decoder/rnn", reuse=True):
            _, h = decoder(tf.nn.embedding_lookup(embedding, word), h)
        word = tf.argmax(attend(h), 1, output_type=tf.int32)
        return t + 1, word, h, words.write(t, word)

    start = tf.fill([tf.shape(source)[0]], 1)
    end = tf1.while_loop(
        lambda t, word, *_: tf.logical_and(t < 7, tf.reduce_any(tf.not_equal(word, 0))),
        step,
        [0, start, state, tf.TensorArray(tf.int32, 7, dynamic_size=True)],
    )
    global_step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.5, global_step, 2, 0.9, staircase=True)
    def feed(n):
        return {"source:0": rng(n).randint(1, 9, [3, 5]).astype("i"), "target:0": rng(n + 9).randint(0, 9, [3, 6]).astype("i")}

    optimizer = tf1.train.AdagradOptimizer(rate)
    pairs, first = optimizer.compute_gradients(loss), end[3].read(0)
    with tf.control_dependencies([g if isinstance(g, tf.Tensor) else g.values for g, _ in pairs] + [first]):
        train = optimizer.apply_gradients(pairs, global_step)
    return Built(train, {"loss": loss, "first": first, "memory": memory}, feed)


@program
def trained_under_updates():
    """What follows the loop is computed before the gradients are asked for, as where batches are normalised after a
    recurrent layer: the loop counts its iterations from a constant that waits for it."""
    x = tf1.placeholder(tf.float32, [3, 2], "x")
    w = variable("w", [2, 2])
    mean = tf1.get_variable("mean", [2], initializer=tf1.zeros_initializer(), trainable=False)
    _, h = tf1.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(h @ w) + x), [0, x])
    batch = tf.reduce_mean(h, 0)
    update = tf1.assign_sub(mean, 0.1 * (mean - batch))
    loss = tf.reduce_mean(tf.square(h - batch))
    with tf.control_dependencies([update, loss]):
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Built(train, {"loss": loss}, lambda n: {"x:0": rng(n).uniform(-1, 1, [3, 2]).astype("f")})


@program
def keras_recurrent():
    """The layers of keras, in a TensorFlow 1 graph."""
    x, _ = inputs()
    h = keras_layers.LSTMV1(4, return_sequences=True, kernel_initializer=initializer(1), recurrent_initializer=initializer(2))(x)
    h = keras_layers.GRUV1(3, kernel_initializer=initializer(3), recurrent_initializer=initializer(4))(h)
    return trained({"h": h}, feeds=feeds)
