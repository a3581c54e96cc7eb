"""Every optimizer of tf.compat.v1.train, on reference and resource variables, dense ones and a gathered embedding."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, variable

train = tf1.train
OPTIMIZERS = {
    "sgd": lambda: train.GradientDescentOptimizer(0.5),
    "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: train.AdagradOptimizer(0.3),
    "adagrad_da": lambda: train.AdagradDAOptimizer(
        0.3, train.get_or_create_global_step(), l1_regularization_strength=0.001, l2_regularization_strength=0.002
    ),
    "adadelta": lambda: train.AdadeltaOptimizer(1.0, 0.9, 1e-4),
    "adam": lambda: train.AdamOptimizer(0.05, epsilon=1e-4),
    "rmsprop": lambda: train.RMSPropOptimizer(0.05),
    "rmsprop_momentum": lambda: train.RMSPropOptimizer(0.05, 0.8, 0.5, 1e-4),
    "rmsprop_centered": lambda: train.RMSPropOptimizer(0.05, 0.8, 0.5, 1e-4, centered=True),
    "ftrl": lambda: train.FtrlOptimizer(0.3, l1_regularization_strength=0.001, l2_regularization_strength=0.002),
    "ftrl_shrinkage": lambda: train.FtrlOptimizer(0.3, -0.4, l2_shrinkage_regularization_strength=0.01),
    "proximal_sgd": lambda: train.ProximalGradientDescentOptimizer(0.3, 0.001, 0.002),
    "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(
        0.3, l1_regularization_strength=0.001, l2_regularization_strength=0.002
    ),
}


def net(make, dtype=tf.float32):
    ids = tf1.placeholder(tf.int64, [None, 3], "ids")
    y = tf1.placeholder(dtype, [None, 2], "y")

    def half(kind, resource):
        def var(name, shape):
            return variable(f"{kind}/{name}", shape, resource, dtype=dtype)

        hidden = tf.tanh(
            tf.reshape(tf.nn.embedding_lookup(var("table", [11, 4]), ids), [-1, 12]) @ var("w", [12, 5]) + var("b", [5])
        )
        return hidden @ var("out", [5, 2])

    loss = tf.reduce_mean(tf1.squared_difference(half("ref", False) + half("resource", True), y))
    step = tf1.train.get_or_create_global_step()

    def feeds(n):
        r = rng(n)
        return {"ids:0": r.randint(0, 7, [6, 3]), "y:0": r.uniform(-1, 1, [6, 2]).astype(dtype.as_numpy_dtype)}

    return Built(make().minimize(loss, step), {"loss": loss}, feeds)


for key, make in OPTIMIZERS.items():
    program(lambda make=make: net(make), name=key)
for key in ("sgd", "momentum", "adagrad", "adam", "rmsprop_centered", "ftrl"):
    program(lambda make=OPTIMIZERS[key]: net(make, tf.float64), name=f"{key}_float64", rtol=1e-6)
