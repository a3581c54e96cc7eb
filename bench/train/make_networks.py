"""Writes the MetaGraphs of whole networks, with TensorFlow. Run: python make_networks.py

Each is built as public TensorFlow 1 programs build it, out of variables and ops: ResNet-20 on 32x32 images, PTB's LSTM of
2 x 200 unrolled and in a while loop, BERT of 2 layers of 128, DCGAN on 28x28 images, a graph convolution of the size of
Cora, wide & deep. The initial values are functions of the seeds, which the graphs hold. What is fed is described in
networks.json; both sides make the same pseudo-random values of it.
"""
import gzip
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()
tf1.disable_resource_variables()
here = os.path.dirname(os.path.abspath(__file__))
feeds = []


def feed(name, shape, limit=0, scale=2.0):
    """A placeholder: integers below limit, or numbers around zero."""
    t = tf1.placeholder(tf.int32 if limit else tf.float32, shape, name)
    feeds.append({"name": t.name, "shape": shape, "limit": limit, "scale": scale})
    return t


def weight(name, shape, stddev=.02):
    seed = len(tf1.global_variables()) + 1
    return tf1.get_variable(name, shape, initializer=tf1.truncated_normal_initializer(stddev=stddev, seed=seed))


def constant(name, shape, value):
    return tf1.get_variable(name, shape, initializer=tf1.constant_initializer(value))


def dense(x, n, name, stddev=None):
    with tf1.variable_scope(name):
        m = int(x.shape[-1])
        return tf.nn.bias_add(tf.matmul(x, weight("kernel", [m, n], stddev or m ** -.5)), constant("bias", [n], 0.))


def batch_norm(x, name):
    with tf1.variable_scope(name):
        n = int(x.shape[-1])
        scale, offset = constant("gamma", [n], 1.), constant("beta", [n], 0.)
        y, mean, var = tf1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-5, is_training=True)
        for moving, batch in ("moving_mean", mean), ("moving_variance", var):
            v = tf1.get_variable(moving, [n], initializer=tf1.zeros_initializer(), trainable=False)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(v, (v - batch) * .01))
        return y


def conv(x, n, size, stride, name):
    with tf1.variable_scope(name):
        m = int(x.shape[-1])
        return tf1.nn.conv2d(x, weight("kernel", [size, size, m, n], (2. / (size * size * n)) ** .5), [1, stride, stride, 1], "SAME")


def cross_entropy(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def with_updates(train):
    with tf1.control_dependencies([train] + tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        tf.no_op("train")


def resnet20():
    x, y = feed("x", [32, 32, 32, 3]), feed("y", [32], limit=10)
    h = tf.nn.relu(batch_norm(conv(x, 16, 3, 1, "first"), "first_norm"))
    for stage, n in enumerate((16, 32, 64)):
        for block in range(3):
            with tf1.variable_scope("s%db%d" % (stage, block)):
                stride = 2 if stage and not block else 1
                shortcut = h if stride == 1 else batch_norm(conv(h, n, 1, 2, "shortcut"), "shortcut_norm")
                r = tf.nn.relu(batch_norm(conv(h, n, 3, stride, "a"), "a_norm"))
                h = tf.nn.relu(batch_norm(conv(r, n, 3, 1, "b"), "b_norm") + shortcut)
    loss = cross_entropy(dense(tf.reduce_mean(h, [1, 2]), 10, "logits"), y)
    decay = tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables() if "kernel" in v.name])
    loss = tf.add(loss, 1e-4 * decay, "loss")
    with_updates(tf1.train.MomentumOptimizer(1e-4, .9).minimize(loss, tf1.train.get_or_create_global_step()))


class Cell:
    """The LSTM cell of PTB's small model."""

    def __init__(self, n, name):
        self.n, self.name, self.output_size, self.state_size = n, name, n, (n, n)

    def zero_state(self, batch, dtype):
        return tf.zeros([batch, self.n], dtype), tf.zeros([batch, self.n], dtype)

    def __call__(self, x, state, scope=None):
        c, h = state
        with tf1.variable_scope(self.name, reuse=tf1.AUTO_REUSE):
            w = tf1.get_variable("kernel", [int(x.shape[-1]) + self.n, 4 * self.n])
            b = constant("bias", [4 * self.n], 0.)
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b), 4, 1)
        c = c * tf.sigmoid(f + 1.) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def lstm(dynamic):
    batch, steps, n, vocabulary = 20, 20, 200, 10000
    x, y = feed("x", [batch, steps], limit=vocabulary), feed("y", [batch, steps], limit=vocabulary)
    uniform = tf1.random_uniform_initializer(-.1, .1, seed=3)
    with tf1.variable_scope("model", initializer=uniform):
        h = tf.nn.embedding_lookup(tf1.get_variable("embedding", [vocabulary, n]), x)
        for layer in range(2):
            cell, zero = Cell(n, "cell%d" % layer), tf.zeros([batch, n])
            if dynamic:
                h, _ = tf1.nn.dynamic_rnn(cell, h, initial_state=(zero, zero), scope="rnn%d" % layer)
                h.set_shape([batch, steps, n])
                continue
            state, outputs = (zero, zero), []
            for t in range(steps):
                out, state = cell(h[:, t, :], state)
                outputs.append(out)
            h = tf.stack(outputs, 1)
        h = tf.reshape(h, [-1, n])
        logits = tf.matmul(h, tf1.get_variable("softmax_w", [n, vocabulary])) + tf1.get_variable("softmax_b", [vocabulary])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
    loss = tf.divide(tf.reduce_sum(losses), float(batch), "loss")
    variables = tf1.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5)
    tf1.train.GradientDescentOptimizer(.01).apply_gradients(zip(grads, variables), tf1.train.get_or_create_global_step(), "train")


def layer_norm(x, name):
    """As contrib.layers.layer_norm."""
    with tf1.variable_scope(name):
        n = int(x.shape[-1])
        beta, gamma = constant("beta", [n], 0.), constant("gamma", [n], 1.)
        mean, var = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-12)


def gelu(x):
    return x * (.5 * (1. + tf.tanh((2 / 3.141592653589793) ** .5 * (x + .044715 * tf.pow(x, 3)))))


def dropout(x):
    return tf1.nn.dropout(x, rate=.1, seed=len(tf1.get_default_graph().get_operations()))


def attention(h, batch, length, mask, heads, size):
    def split(t):
        return tf.transpose(tf.reshape(t, [batch, length, heads, size]), [0, 2, 1, 3])
    n = heads * size
    q, k, v = (split(dense(h, n, name, .02)) for name in ("query", "key", "value"))
    scores = tf.matmul(q, k, transpose_b=True) * size ** -.5 + (1. - mask) * -10000.
    out = tf.matmul(dropout(tf.nn.softmax(scores)), v)
    return tf.reshape(tf.transpose(out, [0, 2, 1, 3]), [batch * length, n])


def bert():
    batch, length, n, vocabulary, heads = 16, 64, 128, 8000, 2
    ids, mask, y = feed("ids", [batch, length], limit=vocabulary), feed("mask", [batch, length], limit=8), feed("y", [batch], limit=2)
    kinds, places = feed("kinds", [batch, length], limit=2), feed("places", [batch * 10], limit=batch * length)
    words = feed("words", [batch * 10], limit=vocabulary)
    mask = tf.expand_dims(tf.ones([batch, length, 1]) * tf.cast(tf.reshape(tf.minimum(mask, 1), [batch, 1, length]), tf.float32), 1)
    table = weight("embeddings", [vocabulary, n])
    h = tf.reshape(tf.gather(table, tf.reshape(ids, [-1])), [batch, length, n])
    kind = tf.matmul(tf.one_hot(tf.reshape(kinds, [-1]), 2), weight("kinds_table", [2, n]))
    h += tf.reshape(kind, [batch, length, n])
    h += tf.reshape(tf.slice(weight("positions", [512, n]), [0, 0], [length, -1]), [1, length, n])
    h = tf.reshape(dropout(layer_norm(h, "norm")), [-1, n])
    for layer in range(2):
        with tf1.variable_scope("layer%d" % layer):
            a = dropout(dense(attention(h, batch, length, mask, heads, n // heads), n, "out", .02))
            h = layer_norm(a + h, "norm_a")
            f = dropout(dense(gelu(dense(h, 4 * n, "wide", .02)), n, "narrow", .02))
            h = layer_norm(f + h, "norm_b")
    first = tf.squeeze(tf.reshape(h, [batch, length, n])[:, 0:1, :], 1)
    next_loss = cross_entropy(dense(tf.tanh(dense(first, n, "pooler", .02)), 2, "next", .02), y)
    m = layer_norm(gelu(dense(tf.gather(h, places), n, "transform", .02)), "transform_norm")
    log_probs = tf.nn.log_softmax(tf.nn.bias_add(tf.matmul(m, table, transpose_b=True), constant("word_bias", [vocabulary], 0.)))
    word_loss = -tf.reduce_sum(log_probs * tf.one_hot(words, vocabulary), -1)
    loss = tf.add(next_loss, tf.reduce_sum(word_loss) / (batch * 10 + 1e-5), "loss")
    variables = tf1.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.)
    updates = []
    for g, v in zip(grads, variables):
        name = v.op.name
        if isinstance(g, tf.IndexedSlices):
            g = tf.convert_to_tensor(g)
        m, s = (tf1.get_variable(name + part, v.shape, initializer=tf1.zeros_initializer(), trainable=False) for part in ("/adam_m", "/adam_v"))
        next_m = tf.multiply(.9, m) + tf.multiply(.1, g)
        next_s = tf.multiply(.999, s) + tf.multiply(.001, tf.square(g))
        update = next_m / (tf.sqrt(next_s) + 1e-6)
        if "norm" not in name and "bias" not in name:
            update += .01 * v
        updates += [v.assign(v - 1e-5 * update), m.assign(next_m), s.assign(next_s)]
    step = tf1.train.get_or_create_global_step()
    tf.group(*updates, step.assign(step + 1), name="train")


def transposed(x, shape, n, name):
    with tf1.variable_scope(name):
        w = weight("kernel", [5, 5, n, int(x.shape[-1])])
        return tf.nn.bias_add(tf1.nn.conv2d_transpose(x, w, shape + [n], [1, 2, 2, 1]), constant("bias", [n], 0.))


def dcgan():
    batch = 64
    images, z = feed("images", [batch, 28, 28, 1]), feed("z", [batch, 100])

    def generator():
        with tf1.variable_scope("generator"):
            h = tf.reshape(dense(z, 7 * 7 * 128, "first", .02), [batch, 7, 7, 128])
            h = transposed(tf.nn.relu(batch_norm(h, "norm0")), [batch, 14, 14], 64, "up1")
            return tf.tanh(transposed(tf.nn.relu(batch_norm(h, "norm1")), [batch, 28, 28], 1, "up2"))

    def discriminator(x):
        with tf1.variable_scope("discriminator", reuse=tf1.AUTO_REUSE):
            h = tf.nn.leaky_relu(conv(x, 64, 5, 2, "down1"))
            h = tf.nn.leaky_relu(batch_norm(conv(h, 128, 5, 2, "down2"), "norm"))
            return dense(tf.reshape(h, [batch, -1]), 1, "logits", .02)

    def against(logits, label):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=label * tf.ones_like(logits)))
    real, fake = discriminator(images), discriminator(generator())
    d_loss, g_loss = against(real, 1.) + against(fake, 0.), against(fake, 1.)
    tf.add(d_loss, g_loss, "loss")
    trains = [tf1.train.AdamOptimizer(1e-5, .5).minimize(loss, var_list=tf1.trainable_variables(scope))
              for loss, scope in ((d_loss, "discriminator"), (g_loss, "generator"))]
    with_updates(tf.group(*trains))


def gcn():
    nodes, words, hidden, classes = 2708, 1433, 16, 7

    def sparse(name, n, shape, scale):
        at = tf.stack([feed(name + "_rows", [n], limit=shape[0]), feed(name + "_columns", [n], limit=shape[1])], 1)
        return tf.SparseTensor(tf.cast(at, tf.int64), tf.abs(feed(name + "_values", [n], scale=scale)), shape)
    x, a = sparse("words", 49216, [nodes, words], .04), sparse("links", 13264, [nodes, nodes], .4)
    labels, train_nodes = feed("labels", [nodes], limit=classes), feed("train_nodes", [140], limit=nodes)
    keep = tf.cast(tf.floor(.5 + tf1.random_uniform([49216], seed=5)), tf.bool)
    x = tf.sparse.retain(x, keep)
    x = tf.SparseTensor(x.indices, x.values * 2., x.dense_shape)
    h = tf.sparse.sparse_dense_matmul(x, weight("w0", [words, hidden], .1))
    h = tf.nn.relu(tf.sparse.sparse_dense_matmul(a, h))
    h = tf1.nn.dropout(h, rate=.5, seed=6)
    h = tf.sparse.sparse_dense_matmul(a, tf.matmul(h, weight("w1", [hidden, classes], .3)))
    mask = tf1.scatter_nd(tf.expand_dims(train_nodes, 1), tf.ones([140]), [nodes])
    mask /= tf.reduce_mean(mask)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(labels, classes), logits=h)
    decay = 5e-4 * tf.nn.l2_loss(tf1.trainable_variables()[0])
    loss = tf.add(tf.reduce_mean(losses * mask), decay, "loss")
    tf1.train.AdamOptimizer(1e-4).minimize(loss, tf1.train.get_or_create_global_step(), name="train")


def wide_deep():
    batch, columns, buckets, width = 256, 8, 1000, 16
    ids, numbers, y = feed("ids", [batch, columns], limit=buckets), feed("numbers", [batch, 6]), feed("y", [batch], limit=2)
    parts, wide = [numbers], constant("wide_bias", [1], 0.)
    for i in range(columns):
        parts.append(tf.nn.embedding_lookup(weight("deep/table%d" % i, [buckets, width], .25), ids[:, i]))
        wide += tf.nn.embedding_lookup(constant("wide/table%d" % i, [buckets, 1], 0.), ids[:, i])
    for i in range(0, columns, 2):
        crossed = tf.math.floormod(ids[:, i] * 1009 + ids[:, i + 1], 100000)
        wide += tf.nn.embedding_lookup(constant("wide/crossed%d" % i, [100000, 1], 0.), crossed)
    with tf1.variable_scope("deep"):
        h = tf.concat(parts, 1)
        for i, n in enumerate((256, 128, 64)):
            h = tf.nn.relu(dense(h, n, "layer%d" % i))
        logits = tf.squeeze(dense(h, 1, "logits") + wide, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(y, tf.float32), logits=logits), name="loss")
    step = tf1.train.get_or_create_global_step()
    deep = tf1.train.AdagradOptimizer(.001).minimize(loss, step, tf1.trainable_variables("deep"))
    other = [v for v in tf1.trainable_variables() if v.op.name.startswith("wide")]
    tf.group(deep, tf1.train.FtrlOptimizer(.001, l1_regularization_strength=.001).minimize(loss, var_list=other), name="train")


NETWORKS = {"resnet20": resnet20, "lstm": lambda: lstm(False), "dynamic_lstm": lambda: lstm(True), "bert": bert, "dcgan": dcgan,
            "gcn": gcn, "wide_deep": wide_deep}
described = {}
for name, build in NETWORKS.items():
    del feeds[:]
    with tf.Graph().as_default():
        tf1.set_random_seed(7)
        build()
        tf1.variables_initializer(tf1.global_variables(), "init")
        meta = tf1.train.export_meta_graph(clear_devices=True, strip_default_attrs=True)
    with open(os.path.join(here, "graphs", name + ".meta.gz"), "wb") as out:
        out.write(gzip.compress(meta.SerializeToString(deterministic=True), mtime=0))
    described[name] = list(feeds)
    print(name, len(meta.graph_def.node), "nodes")
with open(os.path.join(here, "graphs", "networks.json"), "w") as out:
    json.dump(described, out, indent=1)
    out.write("\n")
