"""Networks as public sources write them: loops in logarithms, memories, and steps that TensorFlow 2 traces."""

import functools

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, variable

kept = functools.partial(variable, resource=True, scale=0.3)


def dense(x, n, name, activation=lambda t: t):
    return activation(tf.tensordot(x, kept(name + "/w", [x.shape[-1], n]), 1) + kept(name + "/b", [n]))


def minimized(loss, optimizer, also=()):
    """A step of an optimizer after everything that is fetched."""
    pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g, _ in pairs]
    with tf.control_dependencies([loss, *also, *values]):
        return optimizer.apply_gradients(pairs, tf1.train.get_or_create_global_step())


def traced(build):
    """Has a program built with the control flow of TensorFlow 2."""

    @functools.wraps(build)
    def run():
        tf1.enable_control_flow_v2()
        try:
            return build()
        finally:
            tf1.disable_control_flow_v2()

    return run


@program
def transducer():
    """RNN-T's loss, scans within a scan over time and labels; cepstra of sounds, some of them masked."""
    sounds, labels = tf1.placeholder(tf.float32, [2, 400], "sounds"), tf1.placeholder(tf.int32, [2, 3], "labels")
    spectrum = tf.signal.stft(sounds, 64, 32, 64)
    mel = tf.signal.linear_to_mel_weight_matrix(8, 33, 8000, 80.0, 3800.0)
    cepstra = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.tensordot(tf.abs(spectrum), mel, 1) + 1e-6))[..., :6]
    times = int(cepstra.shape[1])
    first = tf1.random_uniform([], 0, 6, tf.int32, seed=2)
    masked = (tf.range(6) >= first) & (tf.range(6) < first + 2)
    encoded = dense(cepstra * tf.cast(~masked, tf.float32), 8, "encoder", tf.tanh)
    predicted = tf.nn.embedding_lookup(kept("labels", [6, 8]), tf.pad(labels, [[0, 0], [1, 0]]))
    log = tf.nn.log_softmax(dense(tf.tanh(encoded[:, :, None] + predicted[:, None]), 6, "joint"))
    blank = log[..., 0]
    emitted = tf.gather(log[:, :, :3], tf.tile(labels[:, None], [1, times, 1]), axis=3, batch_dims=3)

    def next_time(alpha, t):
        stay = alpha + blank[:, t - 1]
        label = lambda before, u: tf.reduce_logsumexp(tf.stack([before + emitted[:, t, u - 1], stay[:, u]]), 0)
        return tf.concat([stay[:, :1], tf.transpose(tf1.scan(label, tf.range(1, 4), stay[:, 0]))], 1)

    start = tf.concat([tf.zeros([2, 1]), tf.cumsum(emitted[:, 0], 1)], 1)
    alphas = tf1.scan(next_time, tf.range(1, times), start)
    loss = -tf.reduce_mean(alphas[-1, :, -1] + blank[:, -1, -1])
    back = tf.signal.inverse_stft(spectrum, 64, 32, 64, window_fn=tf.signal.inverse_stft_window_fn(32))
    train = minimized(loss, tf1.train.AdamOptimizer(0.01, epsilon=1e-3), [back])
    feed = lambda n: {"sounds:0": rng(n).uniform(-1, 1, [2, 400]).astype("f"), "labels:0": rng(n).randint(1, 6, [2, 3]).astype("i")}
    return Built(train, {"loss": loss, "back": back, "cepstra": cepstra}, feed)


@program
def turing_machine():
    """A memory that is addressed by content, by shifts and by what is free, in a loop."""
    x = tf1.placeholder(tf.float32, [5, 2, 4], "x")
    cells, width, hidden = 6, 5, 8
    shapes = dict(cell=[4 + width + hidden, hidden], key=[hidden, width], erase=[hidden, width], add=[hidden, width], shift=[hidden, 3], gate=[hidden, 3], out=[hidden + width, 4])
    w = {name: kept(name, shape) for name, shape in shapes.items()}

    def free(usage):
        used, order = tf.nn.top_k(-usage, cells)
        allocated = (1 + used) * tf.math.cumprod(-used, 1, exclusive=True)
        return tf.gather(allocated, tf1.map_fn(tf.math.invert_permutation, order), batch_dims=1)

    def step(t, h, memory, focus, usage, read, outputs):
        h = tf.tanh(tf.concat([x[t], read, h], 1) @ w["cell"])
        sharpness, gate, power = tf.split(h @ w["gate"], 3, 1)
        unit = functools.partial(tf.math.l2_normalize, epsilon=1e-6)
        likeness = tf.matmul(unit(memory, 2), unit(h @ w["key"], 1)[:, :, None])[:, :, 0]
        gate = tf.sigmoid(gate)
        mixed = gate * tf.nn.softmax(tf.nn.softplus(sharpness) * likeness) + (1 - gate) * (focus + free(usage)) / 2
        shift = tf.nn.softmax(h @ w["shift"])
        moved = sum(shift[:, k : k + 1] * tf.roll(mixed, 1 - k, 1) for k in range(3))
        focus = tf.pow(moved + 1e-6, 1 + tf.nn.softplus(power))
        focus /= tf.reduce_sum(focus, 1, keepdims=True)
        at = focus[:, :, None]
        memory = memory * (1 - at * tf.sigmoid(h @ w["erase"])[:, None]) + at * tf.tanh(h @ w["add"])[:, None]
        read = tf.reduce_sum(memory * at, 1)
        return t + 1, h, memory, focus, usage + focus - usage * focus, read, outputs.write(t, tf.concat([h, read], 1) @ w["out"])

    start = (0, tf.zeros([2, hidden]), tf.fill([2, cells, width], 0.01), tf.zeros([2, cells]), tf.zeros([2, cells]), tf.zeros([2, width]), tf.TensorArray(tf.float32, 5))
    end = tf1.while_loop(lambda t, *_: t < 5, step, start, swap_memory=True)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(x > 0, tf.float32), logits=end[-1].stack()))
    train = minimized(loss, tf1.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-2))
    return Built(train, {"loss": loss, "memory": end[2]}, lambda n: {"x:0": rng(n).normal(size=[5, 2, 4]).astype("f")})


@program
@traced
def private_descent():
    """The gradient of each example by vectorized_map, clipped, with noise; Jacobians and forward derivatives."""
    x, y = tf1.placeholder(tf.float32, [4, 3], "x"), tf1.placeholder(tf.int32, [4], "y")
    w, b = kept("w", [3, 3]), kept("b", [3])

    @tf.function
    def step(x, y):
        def one(example):
            a, label = example
            with tf.GradientTape() as tape:
                logits = tf.tanh(a[None]) @ w + b
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(label[None], logits)[0]
            return [loss] + tape.gradient(loss, [w, b])

        loss, gw, gb = tf.vectorized_map(one, (x, y))
        norms = tf.sqrt(tf.reduce_sum(gw**2, [1, 2]) + tf.reduce_sum(gb**2, 1))
        scale = 1 / tf.maximum(1.0, norms / 0.5)
        gw = tf.reduce_mean(gw * scale[:, None, None], 0) + 0.01 * tf.random.stateless_normal([3, 3], [1, 2])
        gb = tf.reduce_mean(gb * scale[:, None], 0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            probabilities = tf.nn.softmax(tf.tanh(x) @ w + b)
        jacobian = tape.batch_jacobian(probabilities, x)
        with tf.autodiff.ForwardAccumulator(w, tf.ones_like(w)) as forward:
            total = tf.reduce_sum(tf.tanh(x @ w) ** 2)
        derivative = forward.jvp(total)
        with tf.control_dependencies([jacobian, derivative]):
            w.assign_sub(0.1 * gw)
            b.assign_sub(0.1 * gb)
        return tf.reduce_mean(loss), norms, jacobian, derivative

    outputs = dict(zip(["loss", "norms", "jacobian", "derivative"], step(x, y)))
    feed = lambda n: {"x:0": rng(n).normal(size=[4, 3]).astype("f"), "y:0": rng(n).randint(0, 3, 4).astype("i")}
    return Built(tf.group(outputs["loss"]), outputs, feed)
