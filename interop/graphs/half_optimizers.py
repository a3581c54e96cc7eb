"""Every optimizer on variables of 16 bits: TensorFlow rounds after each operation, so its order shows in every bit."""

import functools
import itertools

import tensorflow as tf

from graphs.optimizers import OPTIMIZERS
from graphs.recorder import Built, program, rng, tf1

R = tf.raw_ops
STEP = {"lr": 0.07, "epsilon": 0.01, "rho": 0.9}
MOMENTUM, FTRL = {"lr": 0.07, "momentum": 0.8}, {"lr": 0.3, "l1": 0.02, "l2": 0.03, "lr_power": -0.5}
SIGNS = {"lr": 0.05, "sign_decay": 0.7, "beta": 0.9}
ADAM = {"beta1_power": 0.9, "lr": 0.05, "beta1": 0.9, "beta2": 0.95, "epsilon": 0.01}
RMS = {**STEP, "momentum": 0.6}
ADAGRAD_V2, FTRL_V2 = {"lr": 0.1, "epsilon": 0.01}, {**FTRL, "l2_shrinkage": 0.01}
BOTH, HALF = [tf.float16, tf.bfloat16], [tf.float16]

# By op: its slots, its scalars and attributes in each variant, the types of its dense and of its sparse form.
RULES = {
    "GradientDescent": ([], [{"alpha": 0.3}], BOTH, []),
    "Momentum": (["accum"], [MOMENTUM, {**MOMENTUM, "use_nesterov": True}], BOTH, BOTH),
    "KerasMomentum": (["accum"], [MOMENTUM, {**MOMENTUM, "use_nesterov": True}], BOTH, BOTH),
    "Adagrad": (["accum"], [{"lr": 0.1}, {"lr": 0.1, "update_slots": False}], BOTH, BOTH),
    "AdagradV2": (["accum"], [ADAGRAD_V2, {**ADAGRAD_V2, "update_slots": False}], BOTH, BOTH),
    "Adadelta": (["accum", "accum_update"], [STEP], BOTH, BOTH),
    "Adam": (["m", "v"], [{**ADAM, "beta2_power": 0.7}, {**ADAM, "beta2_power": 0.7, "use_nesterov": True}], BOTH, []),
    "AdamWithAmsgrad": (["m", "v", "vhat"], [{**ADAM, "beta2_power": 0.7}], BOTH, []),
    "AdaMax": (["m", "v"], [ADAM], HALF, []),
    "RMSProp": (["ms", "mom"], [RMS], BOTH, HALF),
    "CenteredRMSProp": (["mg", "ms", "mom"], [RMS], BOTH, HALF),
    "Ftrl": (["accum", "linear"], [FTRL, {**FTRL, "multiply_linear_by_lr": True}], BOTH, BOTH),
    "FtrlV2": (["accum", "linear"], [FTRL_V2, {**FTRL_V2, "multiply_linear_by_lr": True}], BOTH, BOTH),
    "AddSign": (["m"], [{**SIGNS, "alpha": 1.0}], BOTH, []),
    "PowerSign": (["m"], [{**SIGNS, "logbase": 1.0}], BOTH, []),
}
POWER = {op: {**RULES[op][1][0], "lr_power": -0.4} for op in ("Ftrl", "FtrlV2")}


def start(name, shape, slot):
    """Values that depend on the name: of any sign for a variable, positive for its slots."""
    values = rng(sum(map(ord, name))).uniform(0.25 if slot else -1, 1, shape)
    # That of the gradient is squared and taken off that of the squares.
    return values * 0.1 if slot == "mg" else values


def applied(op, slots, given, dtype, indices, grad, name):
    shape = [4 if indices is not None else 3, *grad.shape[1:]]
    handles = {}
    for slot in ("var", *slots):
        initial = tf.cast(tf.constant(start(name + slot, shape, slot != "var" and slot)), dtype)
        v = tf1.get_variable(f"{name}/{slot}", initializer=initial, use_resource=True, trainable=False)
        handles[slot] = v.handle
    given = {k: v if isinstance(v, bool) else tf.constant(v, dtype) for k, v in given.items()}
    given["delta" if op == "GradientDescent" else "grad"] = tf.cast(grad, dtype)
    if indices is not None:
        op, given["indices"] = "Sparse" + "Apply" + op, indices
        return getattr(R, "Resource" + op)(**handles, **given)
    return getattr(R, "ResourceApply" + op)(**handles, **given)


# Beyond whole packets of 8 TensorFlow rounds more often, and rows of one element have formulas of their own.
WIDTHS = (1, 11)


def updates(sparse):
    """A program of all ops in all variants."""
    rows = 5 if sparse else 3
    indices = tf.constant([2, 0, 3, 2, 1]) if sparse else None
    gradients = {w: tf1.placeholder(tf.float32, [rows, w], f"g{w}") for w in WIDTHS}
    changes = []
    for op, (slots, variants, *types) in RULES.items():
        for n, given in enumerate([*variants, *([POWER[op]] if op in POWER else [])]):
            for dtype, w in itertools.product(types[sparse], WIDTHS):
                changes.append(applied(op, slots, given, dtype, indices, gradients[w], f"{op}_{n}_{dtype.name}_{w}"))

    def feeds(step):
        return {f"g{w}:0": rng(step).uniform(-1, 1, [rows, w]).astype("f") for w in WIDTHS}

    return Built(tf.group(*changes), {}, feeds)


program(lambda: updates(False), name="half_optimizers", rtol=0, atol=0)
program(lambda: updates(True), name="half_optimizers_of_rows", rtol=0, atol=0)


def embeddings(make, resource):
    """An embedding of 16 bits and a factor of all its rows."""
    ids = tf1.placeholder(tf.int32, [8], "ids")
    train, fetches = [], {}
    for dtype in BOTH:
        rows, factor = (
            tf1.get_variable(name + dtype.name, initializer=tf.cast(tf.sin(start), dtype), use_resource=resource)
            for name, start in (("rows_", tf.reshape(tf.range(55.0), [5, 11])), ("factor_", tf.range(1, 12.0)))
        )
        found = tf.nn.embedding_lookup(rows, ids) * factor[:11]
        loss = tf.reduce_sum(tf.square(tf.cast(found, tf.float32)))
        optimizer = make()
        pairs = optimizer.compute_gradients(loss, [rows])
        with tf.control_dependencies([found, loss]):
            train.append(optimizer.apply_gradients(pairs))
        fetches["found_" + dtype.name] = found
    return Built(tf.group(*train), fetches, lambda n: {"ids:0": rng(n).randint(0, 5, 8).astype("i")})


# The others have no kernel for rows of both types.
for key in ("sgd", "momentum", "nesterov", "adagrad", "adadelta", "adam", "ftrl", "ftrl_shrinkage"):
    for kind in ("ref", "resource"):
        build = functools.partial(embeddings, OPTIMIZERS[key], kind == "resource")
        program(build, name=f"half_embeddings_{key}_{kind}", rtol=0, atol=0)
