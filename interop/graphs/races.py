"""Programs that read a variable and write it with no path between the two. TensorFlow gives each of these the same
numbers with one thread between ops and with four: its executor takes the nodes in an order that programs rely on."""

import functools

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, program, tf1


def race(function):
    """Adds a program for reference variables and one for resource variables."""
    for kind in ("ref", "resource"):
        build = functools.partial(function, Variables(kind == "resource"))
        program(build, name=f"race_{function.__name__}_{kind}", steps=5)
    return function


class Variables:
    """Makes variables of one kind."""

    def __init__(self, resource):
        self.resource = resource

    def __call__(self, name, value, dtype=tf.float32, **kw):
        return tf1.get_variable(name, initializer=tf.constant(value, dtype), use_resource=self.resource, **kw)

    def step(self):
        keys = tf1.GraphKeys
        return self("global_step", 0, tf.int64, trainable=False, collections=[keys.GLOBAL_STEP, keys.GLOBAL_VARIABLES])

    def loss(self):
        """The loss of three layers."""
        h = tf.constant(np.linspace(-1, 1, 40).reshape(8, 5), tf.float32)
        for i in range(3):
            w = self(f"w{i}", np.cos(np.arange(25)).reshape(5, 5) * 0.3)
            h = tf.tanh(h @ w + self(f"b{i}", np.zeros(5)))
        return tf.reduce_mean(tf.square(h - 0.3))


def decayed(var, loss, rate):
    """The optimizer that BERT brings: Adam with weight decay, by assignments."""
    variables = tf1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    assignments = []
    for g, p in zip(gradients, variables):
        m = var(p.op.name + "/adam_m", np.zeros(p.shape), trainable=False)
        v = var(p.op.name + "/adam_v", np.zeros(p.shape), trainable=False)
        next_m, next_v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * tf.square(g)
        update = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * p
        assignments += [p.assign(p - rate * update), m.assign(next_m), v.assign(next_v)]
    return assignments


def descent(rate):
    return tf1.train.GradientDescentOptimizer(rate)


@race
def warm_up(var):
    """BERT's: a rate that grows for some steps, then falls, and a step that is raised last."""
    step, loss = var.step(), var.loss()
    falling = tf1.train.polynomial_decay(tf.constant(0.5), step, 10, end_learning_rate=0.0)
    count, warm = tf.cast(step, tf.int32), tf.constant(4, tf.int32)
    growing = 0.5 * tf.cast(count, tf.float32) / tf.cast(warm, tf.float32)
    is_warm = tf.cast(count < warm, tf.float32)
    rate = (1.0 - is_warm) * falling + is_warm * growing
    assignments = decayed(var, loss, rate)
    return Built(tf.group(*assignments, step.assign(step + 1)), {"rate": rate, "loss": loss})


@race
def raised_first(var):
    """The assignment comes first in the graph."""
    step = var.step()
    raised = step.assign(step + 1)
    loss = var.loss()
    rate = tf1.train.exponential_decay(0.1, step, 2, 0.5)
    return Built(tf.group(*decayed(var, loss, rate), raised), {"rate": rate, "loss": loss})


@race
def added_last(var):
    step, loss = var.step(), var.loss()
    rate = tf1.train.exponential_decay(0.1, step, 2, 0.5)
    return Built(tf.group(descent(rate).minimize(loss), step.assign_add(1)), {"rate": rate, "loss": loss})


@race
def added_first(var):
    step = var.step()
    raised = step.assign_add(1)
    loss = var.loss()
    rate = tf1.train.exponential_decay(0.1, step, 2, 0.5)
    return Built(tf.group(descent(rate).minimize(loss), raised), {"rate": rate, "loss": loss})


@race
def fetched_rate(var):
    step, loss = var.step(), var.loss()
    rate = tf1.train.cosine_decay(0.1, step, 5)
    train = tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    return Built(train, {"rate": rate, "loss": loss, "step": tf.identity(step), "twice": tf.cast(step, tf.float32) * 2})


@race
def fetched_weights(var):
    step, loss = var.step(), var.loss()
    weights = tf1.trainable_variables()
    norm = tf.add_n([tf.nn.l2_loss(w) for w in weights])
    return Built(descent(0.1).minimize(loss, step), {"loss": loss, "norm": norm, "first": tf.reduce_sum(weights[0])})


@race
def averages(var):
    """Moving averages that follow the update, by a number of updates that does not."""
    step, loss = var.step(), var.loss()
    weights = tf1.trainable_variables()
    train = descent(0.1).minimize(loss, step)
    shadows = [var(w.op.name + "/average", np.zeros(w.shape), trainable=False) for w in weights]
    with tf.control_dependencies([train]):
        count = tf.cast(step, tf.float32)
        decay = tf.minimum(0.99, (1.0 + count) / (10.0 + count))
        averaged = [tf1.assign_sub(s, (1.0 - decay) * (s - w)) for s, w in zip(shadows, weights)]
    return Built(tf.group(*averaged), {"loss": loss, "decay": decay})


@race
def batch_mean(var):
    """A moving mean that is used and updated, as in a batch normalization without dependencies."""
    step, loss = var.step(), var.loss()
    mean = var("mean", np.ones(5), trainable=False)
    x = tf.constant(np.linspace(-1, 1, 40).reshape(8, 5), tf.float32)
    update = mean.assign(mean * 0.9 + tf.reduce_mean(x, 0) * 0.1)
    out = tf.reduce_sum(tf.square(x - mean))
    return Built(tf.group(descent(0.1).minimize(loss, step), update), {"out": out})


@race
def two_counters(var):
    a, b = var("a", 1.0), var("b", 10.0)
    return Built(tf.group(a.assign(b + 1.0), b.assign(a * 2.0)), {"sum": a + b})


@race
def partly_ordered(var):
    """A read that waits for the assignment, and a rate whose read does not."""
    step, loss = var.step(), var.loss()
    with tf.control_dependencies([step.assign_add(1)]):
        raised = tf.identity(step)
    rate = tf1.train.inverse_time_decay(0.1, step, 2, 0.5)
    return Built(descent(rate).minimize(loss), {"raised": raised, "rate": rate})


@race
def chosen_rate(var):
    step, loss = var.step(), var.loss()
    weights = tf1.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, weights), 0.1)
    rate = tf1.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01])
    train = tf1.train.AdamOptimizer(rate).apply_gradients(zip(gradients, weights), step)
    return Built(train, {"norm": norm, "rate": rate, "loss": loss})


@race
def scattered(var):
    table = var("table", np.arange(12.0).reshape(6, 2))
    ids = tf.constant([1, 3])
    rows = tf.nn.embedding_lookup(table, ids)
    train = tf1.scatter_add(table, ids, tf.ones([2, 2]))
    return Built(train.op, {"rows": rows, "sum": tf.reduce_sum(table)})


@race
def long_read(var):
    """A variable that is read at the end of long products, and one that is assigned there."""
    a, b = var("a", 1.0), var("b", 1.0)
    product = tf.ones([100, 100])
    for _ in range(4):
        product = product @ tf.ones([100, 100]) * 0.001
    mean = tf.reduce_mean(product)
    train = tf.group(a.assign(a + 1.0), b.assign(b + mean))
    return Built(train, {"late": mean * a, "early": b * 2.0})


@race
def before_a_queue(var):
    """Weights that nothing orders with their update, which a queue waits for: as a generator of samples in the graph of
    its training has them."""
    queue = tf1.FIFOQueue(1, tf.float32, shapes=[5])
    loss, step = var.loss(), var.step()
    train = descent(0.1).minimize(loss, step)
    with tf.control_dependencies([train]):
        past = queue.dequeue()
    with tf.control_dependencies([past]):
        put = queue.enqueue(past + 1.0)
    made = tf.reduce_sum(tf.tanh(past[None] @ tf1.trainable_variables()[0]))
    return Built(put, {"loss": loss, "made": made}, start=[queue.enqueue(tf.ones([5]))])


def halved_rate(var):
    """A rate that is a variable, and halved by the step that uses it. With a reference TensorFlow's result varies."""
    step, loss = var.step(), var.loss()
    rate = var("rate", 0.1, trainable=False)
    halved = rate.assign(rate * 0.5)
    return Built(tf.group(descent(rate).minimize(loss, step), halved), {"loss": loss})


program(functools.partial(halved_rate, Variables(True)), name="race_halved_rate_resource", steps=5)
