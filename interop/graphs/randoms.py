"""Random ops with seeds, in the steps and in the initialisers: TensorFlow's numbers are wanted."""

import tensorflow as tf

from graphs.recorder import Built, program, tf1, variable


@program(rtol=1e-6, atol=1e-7)
def random_ops():
    r = tf1.random
    out = {
        "uniform": tf1.random_uniform([3, 5], seed=1),
        "range": tf1.random_uniform([7], -3, 4, seed=2),
        "int": tf1.random_uniform([9], 0, 10, tf.int32, seed=3),
        "long": tf1.random_uniform([5], 0, 1 << 40, tf.int64, seed=4),
        "normal": tf1.random_normal([4, 3], 1.0, 2.0, seed=5),
        "double": tf1.random_normal([5], dtype=tf.float64, seed=6),
        "truncated": tf1.truncated_normal([50], seed=7),
        "double_uniform": tf1.random_uniform([5], dtype=tf.float64, seed=8),
        "shuffle": tf1.random_shuffle(tf.range(20), seed=9),
        "shuffle_rows": tf1.random_shuffle(tf.reshape(tf.range(12.0), [6, 2]), seed=10),
        "multinomial": tf1.multinomial(tf.math.log([[1.0, 2, 3], [5.0, 1, 1]]), 6, seed=11),
        "graph_seed": tf1.random_uniform([4]),
        "categorical": r.categorical(tf.math.log([[1.0, 9.0]]), 8, seed=12, dtype=tf.int32),
    }
    return Built(None, out)


@program(rtol=1e-5)
def random_gamma():
    r = tf1.random
    return Built(None, {"gamma": r.gamma([4], [0.5, 2.0], seed=13), "poisson": r.poisson([3.0], [5], seed=14)})


@program
def stateless():
    r = tf.random
    return Built(
        None,
        {
            "uniform": r.stateless_uniform([5], [1, 2]),
            "normal": r.stateless_normal([5], [3, 4]),
            "truncated": r.stateless_truncated_normal([5], [3, 4]),
            "int": r.stateless_uniform([5], [1, 2], 0, 9, tf.int32),
        },
    )


@program(steps=1, rtol=1e-6, atol=1e-7)
def initializers():
    """Every initialiser of tf.compat.v1 that needs no decomposition."""
    i = tf1.initializers
    made = {
        "zeros": i.zeros(),
        "ones": i.ones(),
        "constant": i.constant(3.5),
        "uniform": i.random_uniform(-1, 1, seed=1),
        "normal": i.random_normal(0, 2, seed=2),
        "truncated": i.truncated_normal(0, 2, seed=3),
        "scaling": i.variance_scaling(2.0, "fan_out", "uniform", seed=4),
        "glorot_uniform": i.glorot_uniform(seed=5),
        "glorot_normal": i.glorot_normal(seed=6),
        "he_normal": i.he_normal(seed=7),
        "he_uniform": i.he_uniform(seed=8),
        "lecun_normal": i.lecun_normal(seed=9),
        "lecun_uniform": i.lecun_uniform(seed=10),
        "unit": tf1.uniform_unit_scaling_initializer(seed=11),
        "default": None,
        "identity": i.identity(0.5),
    }
    for resource in (False, True):
        for name, init in made.items():
            tf1.get_variable(f"{name}_{resource}", [6, 4], initializer=init, use_resource=resource)
    tf1.get_variable("double", [5], tf.float64, i.random_normal(seed=12))
    tf1.get_variable("kernel", [3, 3, 2, 4], initializer=i.he_normal(seed=13))
    dependent = tf1.get_variable("dependent", initializer=tf1.trainable_variables()[3].initialized_value() * 2.0)
    tf1.Variable(tf1.random_normal([3], seed=14), name="plain")
    return Built(None, {"dependent": tf.identity(dependent)})


@program(steps=1)
def orthogonal():
    tf1.get_variable("o", [5, 3], initializer=tf1.orthogonal_initializer(seed=1))
    return Built(None, {})


@program(rtol=1e-6, atol=1e-7)
def generators():
    """Generators whose position is a variable, one draw after the other."""
    g = tf.random.Generator.from_state(tf.constant([5, 2, 77], tf.int64), alg="philox")
    out = {}
    draws = {
        "normal": lambda: g.normal([3, 2]),
        "uniform": lambda: g.uniform([5], -1, 1),
        "int": lambda: g.uniform([4], 0, 1000, tf.int32),
        "long": lambda: g.uniform_full_int([3], tf.uint64),
        "truncated": lambda: g.truncated_normal([4]),
        "seeds": lambda: g.make_seeds(2),
        "state": lambda: tf.identity(g.state),
    }
    before = []
    for name, draw in draws.items():
        with tf.control_dependencies(before):
            out[name] = draw()
        before = [out[name].op]
    with tf.control_dependencies(before):
        g.skip(3)
        out["skipped"] = tf.raw_ops.RngReadAndSkip(resource=g.state.handle, alg=1, delta=tf.constant(9, tf.uint64))
    return Built(None, out)
