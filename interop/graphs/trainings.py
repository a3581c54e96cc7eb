"""Further kinds of trainings, as programs of TensorFlow 1 write them."""

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def minimized(loss, also=(), optimizer=None):
    """A step of an optimizer and what else a program updates."""
    step = (optimizer or tf1.train.GradientDescentOptimizer(0.1)).minimize(loss, tf1.train.get_or_create_global_step())
    return tf.group(step, *also)


@program
def quantization_aware():
    """Weights and activations go through fake quantization; the ranges are learnt or fixed."""
    x = tf1.placeholder(tf.float32, [None, 6], "x")
    w, low, high = variable("w", [6, 4]), variable("low", [4]), variable("high", [4])
    q = tf.quantization
    kernel = q.fake_quant_with_min_max_vars_per_channel(w, -tf.abs(low) - 0.1, tf.abs(high) + 0.1, num_bits=4)
    h = q.fake_quant_with_min_max_args(x @ kernel, -1, 1)
    top = tf1.get_variable("top", initializer=0.8)
    h = q.fake_quant_with_min_max_vars(tf.nn.relu(h), 0.0, top, narrow_range=True)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(h, 1) - tf.reduce_sum(x, 1)))
    return Built(minimized(loss), {"loss": loss, "h": h}, lambda n: {"x:0": rng(n).uniform(-1, 1, [5, 6]).astype("f")})


@program
def augmented_images():
    x = tf1.placeholder(tf.float32, [None, 6, 6, 3], "x")
    i = tf.image
    tone = variable("tone", [3])
    h = i.adjust_contrast(i.adjust_saturation(i.adjust_hue(x, 0.1), 1.5), 0.7)
    hsv = i.rgb_to_hsv(h)
    out = {
        "hsv": hsv,
        "rgb": i.hsv_to_rgb(tf.clip_by_value(hsv, 0.0, 1.0)),
        "bright": i.adjust_brightness(x, 0.1),
        "gamma": i.adjust_gamma(x, 0.8),
        "grey": i.rgb_to_grayscale(x),
        "standard": tf.map_fn(i.per_image_standardization, x),
        "crop": i.central_crop(x, 0.5),
        "padded": i.resize_with_crop_or_pad(x, 8, 5),
        "rotated": i.rot90(x),
        "variation": i.total_variation(x * tone),
        "flip": tf.map_fn(lambda v: i.random_flip_left_right(v, seed=3), x),
        "contrast": tf.map_fn(lambda v: i.random_contrast(v, 0.5, 1.5, seed=4), x),
        "toned": h * tone,
    }
    return trained(out, feeds=lambda n: {"x:0": rng(n).uniform(0, 1, [3, 6, 6, 3]).astype("f")})


@program
def sparse_arithmetic():
    values = variable("values", [5])
    index = [[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]]
    a = tf.SparseTensor(index, values, [3, 4])
    b = tf.SparseTensor([[0, 1], [1, 1], [2, 3]], [1.0, 2, 3], [3, 4])
    dense = variable("dense", [3, 4])
    both = tf.sparse.add(a, b)
    wide = tf.sparse.concat(1, [a, b, a])
    out = {
        "sum": both.values,
        "index": both.indices,
        "wide": wide.indices,
        "wide_values": wide.values,
        "softmax": tf.sparse.softmax(a).values,
        "times": (a * dense).values,
        "over": (a / (tf.abs(dense) + 1)).values,
        "reduced": tf.sparse.reduce_sum(both, 1),
        "matmul": tf.sparse.sparse_dense_matmul(a, tf.transpose(dense)),
        "dense": tf.sparse.to_dense(both),
    }
    return trained(out)


@program
def q_learning():
    """A network and a slow copy of it; experience is kept in variables that are written row by row."""
    state = tf1.placeholder(tf.float32, [None, 4], "state")
    action = tf1.placeholder(tf.int32, [None], "action")
    memory = tf1.get_variable("memory", [6, 4], initializer=tf1.zeros_initializer(), trainable=False)
    at = tf1.get_variable("at", initializer=0, trainable=False)

    def values(name, x):
        with tf1.variable_scope(name):
            init = tf1.glorot_uniform_initializer
            h = tf.nn.relu(x @ tf1.get_variable("w1", [4, 8], initializer=init(seed=1)))
            return h @ tf1.get_variable("w2", [8, 3], initializer=init(seed=2))

    rows = tf.math.floormod(at + tf.range(2), 6)
    with tf.control_dependencies([tf1.scatter_update(memory, rows, state[:2])]):
        kept = tf1.assign_add(at, 2)
    q, slow = values("q", state), values("slow", state * 0.9)
    taken = tf.reduce_sum(q * tf.one_hot(action, 3), 1)
    target = tf.stop_gradient(tf.reduce_max(slow, 1) * 0.9 + 1)
    loss = tf1.losses.huber_loss(target, taken)
    fast, copies = (tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES, s + "/") for s in ("q", "slow"))
    optimizer = tf1.train.RMSPropOptimizer(0.01)
    pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss, fast)]
    with tf.control_dependencies([kept, optimizer.apply_gradients(pairs, tf1.train.get_or_create_global_step())]):
        step = tf.group(*(tf1.assign(b, 0.9 * b.read_value() + 0.1 * a.read_value()) for a, b in zip(fast, copies, strict=True)))
    pick = tf.where(tf1.random_uniform([5], seed=4) < 0.5, tf.argmax(q, 1), tf1.random_uniform([5], 0, 3, tf.int64, seed=5))
    feeds = lambda n: {"state:0": rng(n).normal(0, 1, [5, 4]).astype("f"), "action:0": rng(n).randint(0, 3, 5).astype("i")}
    return Built(step, {"loss": loss, "pick": pick}, feeds)


@program
def hidden_factors():
    """A variational autoencoder: draws in the middle, two terms in the loss."""
    x = tf1.placeholder(tf.float32, [None, 9], "x")
    init = lambda seed: tf1.glorot_normal_initializer(seed=seed)
    h = tf1.nn.softplus(x @ tf1.get_variable("in", [9, 6], initializer=init(1)))
    mean, log_var = tf.split(h @ tf1.get_variable("code", [6, 4], initializer=init(2)), 2, axis=1)
    z = mean + tf.exp(0.5 * log_var) * tf1.random_normal(tf.shape(mean), seed=3)
    logits = z @ tf1.get_variable("out", [2, 9], initializer=init(4))
    likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    divergence = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), 1)
    loss = tf.reduce_mean(likelihood + divergence)
    noise = tf1.random.gamma([2], tf.nn.softplus(mean), seed=5)
    return Built(minimized(loss, optimizer=tf1.train.AdamOptimizer(0.01)), {"loss": loss, "z": z, "noise": noise},
                 lambda n: {"x:0": (rng(n).uniform(0, 1, [4, 9]) > 0.5).astype("f")})


@program
def two_players():
    """A GAN: two optimizers, each with its own variables, in turn."""
    real = tf1.placeholder(tf.float32, [None, 2], "real")

    def judge(x, again=None):
        with tf1.variable_scope("judge", reuse=again):
            init = tf1.get_variable("w", [2, 5], initializer=tf1.truncated_normal_initializer(0, 0.3, seed=1))
            v = tf1.get_variable("v", [5, 1], initializer=tf1.truncated_normal_initializer(0, 0.3, seed=2))
            return tf.nn.leaky_relu(x @ init) @ v

    with tf1.variable_scope("maker"):
        z = tf1.random_uniform([tf.shape(real)[0], 3], -1, 1, seed=3)
        w = tf1.get_variable("w", [3, 2], initializer=tf1.truncated_normal_initializer(0, 0.3, seed=4))
        made = tf.tanh(z @ w)
    d_real, d_made = judge(real), judge(made, True)
    xent = tf1.losses.sigmoid_cross_entropy
    d_loss = xent(tf.ones_like(d_real), d_real, label_smoothing=0.1) + xent(tf.zeros_like(d_made), d_made)
    g_loss = xent(tf.ones_like(d_made), d_made)
    own = lambda s: tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, s)
    judged = tf1.train.AdamOptimizer(0.01, beta1=0.5, name="AdamD").minimize(d_loss, var_list=own("judge"))
    with tf.control_dependencies([judged]):
        steps = tf1.train.get_or_create_global_step()
        step = tf1.train.AdamOptimizer(0.01, beta1=0.5, name="AdamG").minimize(g_loss, steps, var_list=own("maker"))
    return Built(step, {"d": d_loss, "g": g_loss}, lambda n: {"real:0": rng(n).normal(0, 1, [6, 2]).astype("f")})


@program
def bucketed_columns():
    """Numbers in buckets, crossed by hand, hashed words: the wide part of a wide and deep model."""
    age = tf1.placeholder(tf.float32, [None], "age")
    words = tf1.placeholder(tf.string, [None], "words")
    bucket = tf.raw_ops.Bucketize(input=age, boundaries=[18.0, 30, 50])
    word = tf1.string_to_hash_bucket_fast(words, 7)
    cross = tf1.string_to_hash_bucket_fast(tf.strings.join([tf.as_string(bucket), words], "_X_"), 11)
    out = 0.0
    for name, ids, n in (("age", bucket, 4), ("word", word, 7), ("cross", cross, 11)):
        table = tf1.get_variable(name + "_weights", [n, 1], initializer=tf1.zeros_initializer())
        out += tf.nn.embedding_lookup(table, ids)
    bias = tf1.get_variable("bias", [1], initializer=tf1.zeros_initializer())
    labels = tf.cast(age > 25, tf.float32)
    loss = tf1.losses.sigmoid_cross_entropy(labels[:, None], out + bias)
    feeds = lambda n: {"age:0": rng(n).uniform(10, 70, 8).astype("f"), "words:0": rng(n).choice([b"a", b"bc", b"", b"wide"], 8).astype(object)}
    return Built(minimized(loss, optimizer=tf1.train.FtrlOptimizer(0.5, l1_regularization_strength=0.01)), {"loss": loss, "bucket": bucket, "cross": cross}, feeds)


@program
def spectra():
    """Windowed Fourier transforms and what is learnt from them."""
    x = tf1.placeholder(tf.float32, [None, 64], "x")
    s = tf.signal
    frames = s.stft(x * variable("gain", [64]), 16, 8)
    power = tf.math.log(tf.square(tf.abs(frames)) + 1e-3)
    mel = tf.tensordot(power, s.linear_to_mel_weight_matrix(5, 9, 8000, 100.0, 3000.0), 1)
    out = {
        "power": power,
        "mel": mel,
        "frames": s.frame(x, 10, 5, pad_end=True),
        "mfcc": s.mfccs_from_log_mel_spectrograms(mel)[..., :3],
        "dct": s.dct(x[:, :8], 2, norm="ortho"),
        "back": tf.math.real(s.ifft(tf.cast(x[:, :8], tf.complex64))),
    }
    return trained(out, rate=1e-3, feeds=lambda n: {"x:0": rng(n).uniform(-1, 1, [2, 64]).astype("f")})


@program
def cases():
    """Branches, folds and scans over a batch."""
    x = tf1.placeholder(tf.float32, [4, 3], "x")
    n = tf1.placeholder(tf.int32, [], "n")
    w = variable("w", [3])
    chosen = tf1.case([(tf.equal(n % 3, 0), lambda: x * w), (tf.equal(n % 3, 1), lambda: x - w)], default=lambda: x + w)
    switched = tf1.switch_case(n % 2, [lambda: tf.reduce_sum(w), lambda: tf.reduce_max(w)])
    out = {
        "chosen": chosen,
        "switched": switched,
        "fold": tf1.foldl(lambda a, v: a * 0.5 + v * w, x),
        "foldr": tf1.foldr(lambda a, v: tf.tanh(a + v * w), x),
        "scan": tf1.scan(lambda a, v: a + v * w, x, reverse=True),
        "vector": tf1.vectorized_map(lambda v: tf.reduce_sum(v * w), x),
        "pairs": tf1.map_fn(lambda p: p[0] * p[1], (x, x * w), dtype=tf.float32),
        "loop": tf1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 0.5 + w), [0, w])[1],
    }
    return trained(out, rate=0.01, feeds=lambda k: {"x:0": rng(k).uniform(-1, 1, [4, 3]).astype("f"), "n:0": np.int32(k)})
