"""Learning-rate schedules, gradient clipping and moving averages."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, variable

SCHEDULES = {
    "exponential": lambda s: tf1.train.exponential_decay(0.1, s, 3, 0.7),
    "staircase": lambda s: tf1.train.exponential_decay(0.1, s, 3, 0.7, staircase=True),
    "polynomial": lambda s: tf1.train.polynomial_decay(0.1, s, 5, 0.01, power=2.0),
    "polynomial_cycle": lambda s: tf1.train.polynomial_decay(0.1, s, 2, 0.01, cycle=True),
    "piecewise": lambda s: tf1.train.piecewise_constant(s, [1, 3], [0.1, 0.05, 0.01]),
    "inverse": lambda s: tf1.train.inverse_time_decay(0.1, s, 2, 0.5),
    "inverse_staircase": lambda s: tf1.train.inverse_time_decay(0.1, s, 2, 0.5, staircase=True),
    "natural": lambda s: tf1.train.natural_exp_decay(0.1, s, 2, 0.5),
    "cosine": lambda s: tf1.train.cosine_decay(0.1, s, 5, alpha=0.1),
    "cosine_restarts": lambda s: tf1.train.cosine_decay_restarts(0.1, s, 2),
    "linear_cosine": lambda s: tf1.train.linear_cosine_decay(0.1, s, 5),
    "noisy": lambda s: tf1.train.noisy_linear_cosine_decay(0.1, s, 5),
    "restarts_growing": lambda s: tf1.train.cosine_decay_restarts(0.1, s, 2, t_mul=1.5, m_mul=0.5),
    "warmup": lambda s: tf.cond(s < 2, lambda: 0.01 * tf.cast(s + 1, tf.float32), lambda: tf.constant(0.1)),
    "warmup_where": lambda s: tf1.where(s < 2, 0.01 * tf.cast(s + 1, tf.float32), 0.1),
}


def regression(resource=False):
    x = tf1.placeholder(tf.float32, [None, 6], "x")
    y = x @ variable("w", [6, 3], resource) + variable("b", [3], resource)
    return tf.reduce_mean(tf.square(y - x[:, :3] * 2 + 1))


def feeds(n):
    return {"x:0": rng(n).uniform(-1, 1, [8, 6]).astype("f")}


@program(steps=6)
def rates():
    """One optimizer at the sum of all schedules."""
    step = tf1.train.get_or_create_global_step()
    before = tf.identity(step)
    rates = {key: rate(before) for key, rate in SCHEDULES.items()}
    rate = tf.add_n(list(rates.values())) / len(rates)
    loss = regression()
    with tf.control_dependencies([loss, *rates.values()]):
        train = tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    return Built(train, {"loss": loss, **rates}, feeds)


def clipped(clip, optimizer):
    step = tf1.train.get_or_create_global_step()
    loss = regression(resource=True)
    pairs = optimizer.compute_gradients(loss)
    gradients, variables = zip(*pairs)
    gradients, extra = clip(list(gradients))
    return Built(optimizer.apply_gradients(zip(gradients, variables), step), {"loss": loss, **extra}, feeds)


@program
def clip_global_norm():
    def clip(gradients):
        gradients, norm = tf.clip_by_global_norm(gradients, 0.3)
        return gradients, {"norm": norm}

    return clipped(clip, tf1.train.AdamOptimizer(0.05, epsilon=1e-4))


@program
def clip_norm_and_value():
    def clip(gradients):
        first, second = tf.clip_by_norm(gradients[0], 0.2), tf.clip_by_value(gradients[1], -0.1, 0.05)
        return [first, second], {"average": tf1.clip_by_average_norm(gradients[0], 0.01)}

    return clipped(clip, tf1.train.GradientDescentOptimizer(0.5))


def averaged(resource, **kw):
    step = tf1.train.get_or_create_global_step()
    loss = regression(resource)
    apply = tf1.train.GradientDescentOptimizer(0.3).minimize(loss, step)
    average = tf1.train.ExponentialMovingAverage(0.9, num_updates=step, **kw)
    with tf.control_dependencies([apply]):
        train = average.apply(tf1.trainable_variables() + [loss] if not resource else tf1.trainable_variables())
    return Built(train, {"loss": loss}, feeds)


program(lambda: averaged(False), name="moving_average_ref")
program(lambda: averaged(True), name="moving_average_resource")
program(lambda: averaged(False, zero_debias=True), name="moving_average_debiased")


@program(steps=6)
def accumulated():
    """Gradients summed over three micro-batches before they are applied."""
    step = tf1.train.get_or_create_global_step()
    micro = tf1.get_variable("micro", [], tf.int32, tf1.zeros_initializer(), trainable=False, use_resource=False)
    loss = regression()
    optimizer = tf1.train.AdamOptimizer(0.05, epsilon=1e-4)
    pairs = optimizer.compute_gradients(loss)
    sums = [variable("sum/" + v.op.name, v.shape.as_list(), scale=0.0, trainable=False) for _, v in pairs]
    add = [tf1.assign_add(s, g) for s, (g, _) in zip(sums, pairs)] + [tf1.assign_add(micro, 1)]
    with tf.control_dependencies(add):

        def apply():
            done = optimizer.apply_gradients([(s / 3.0, v) for s, (_, v) in zip(sums, pairs)], step)
            with tf.control_dependencies([done]):
                return tf.group(*[tf1.assign(s, tf.zeros_like(s)) for s in sums])

        train = tf.cond(tf.equal(tf1.assign_add(micro, 0) % 3, 0), apply, tf.no_op)
    return Built(train, {"loss": loss}, feeds)
