"""What the ckpt command rewrites - copies in part, averages, moving averages, other types - TensorFlow loads."""

import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1
FLOATS = [tf.float32, tf.float64, tf.half, tf.bfloat16]


def save(prefix, tensors):
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors), shape_and_slices=[""] * len(tensors), tensors=list(tensors.values()))
    return str(prefix)


def restore(prefix, name, dtype):
    return tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=[name], shape_and_slices=[""], dtypes=[dtype])[0]


def bits(tensor):
    return np.ascontiguousarray(tensor.numpy()).tobytes()


def odd_numbers(dtype):
    """Every 16-bit pattern, or as many random ones, with the edges of the narrower types among them."""
    if dtype.size == 2:
        return tf.constant(np.arange(1 << 16, dtype=np.uint16).view(dtype.as_numpy_dtype))
    rng = np.random.default_rng(1)
    values = rng.standard_normal(60000) * 10.0 ** rng.integers(-46, 40, size=60000)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 65536, 2.0**-24, 2.0**-25, 3 * 2.0**-25, 6.1e-5, 2.0**-14 - 2.0**-25,
             1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.3e38, 3.4028e38]  # fmt: skip
    with np.errstate(over="ignore"):
        return tf.constant(np.concatenate([values, edges]).astype(dtype.as_numpy_dtype))


@pytest.mark.parametrize("target", ["f32", "f16", "bf16"])
def test_dtype_is_tensorflows_cast(ckpt, tmp_path, target):
    tensors = {d.name: odd_numbers(d) for d in FLOATS} | {"int": tf.constant([1, 2]), "complex": tf.constant([1 + 2j])}
    tensors |= {n: tf.constant(np.arange(256, dtype=np.uint8).view(getattr(tf.dtypes.experimental, n).as_numpy_dtype))
                for n in ("float8_e5m2", "float8_e4m3fn")}  # fmt: skip
    ckpt("cp", save(tmp_path / "a", tensors), tmp_path / "b", "--dtype", target)
    to = {"f32": tf.float32, "f16": tf.half, "bf16": tf.bfloat16}[target]
    for name in ("int", "complex"):
        assert bits(restore(tmp_path / "b", name, tensors[name].dtype)) == bits(tensors[name])
    for name, value in tensors.items():
        if not value.dtype.is_floating:
            continue
        want, got = tf.cast(value, to).numpy(), restore(tmp_path / "b", name, to).numpy()
        nan = np.isnan(want.astype(np.float32))
        assert (np.isnan(got.astype(np.float32)) == nan).all(), name
        view = {2: np.uint16, 4: np.uint32}[to.size]
        # Between float64 and its goal TensorFlow flushes the subnormal float32 to zero; we keep them.
        flushed = (np.abs(value.numpy().astype(np.float64)) < np.finfo(np.float32).tiny) & (value.dtype == tf.float64)
        differ = np.flatnonzero((got.view(view) != want.view(view)) & ~nan & ~flushed)
        assert differ.size == 0, (name, value.numpy()[differ[:5]], got[differ[:5]], want[differ[:5]])


def test_avg(ckpt, tmp_path):
    rng = np.random.default_rng(2)
    runs = []
    for step in (10, 20, 30):
        values = {d.name: tf.cast(tf.constant(rng.standard_normal((5, 7))), d) for d in FLOATS}
        values |= {"c": tf.constant(rng.standard_normal(3) + 1j), "global_step": tf.constant(step, tf.int64), "s": tf.constant([f"at {step}"]), "e": tf.zeros([0, 3])}
        runs.append((save(tmp_path / f"m-{step}", values), values))
    ckpt("avg", *[p for p, _ in runs], tmp_path / "avg", "--shards", 2)
    for name, last in runs[-1][1].items():
        got = restore(tmp_path / "avg", name, last.dtype)
        assert got.shape == last.shape
        if last.dtype.is_floating or last.dtype.is_complex:
            wide = np.complex128 if last.dtype.is_complex else np.float64
            want = np.mean([v[name].numpy().astype(wide) for _, v in runs], axis=0)
            np.testing.assert_allclose(got.numpy().astype(wide), want, rtol={2: 8e-3, 4: 1e-7}.get(last.dtype.size, 1e-15), atol=1e-12, err_msg=name)
        else:
            assert got.numpy().tolist() == last.numpy().tolist(), name
    # Equal checkpoints have exactly themselves as average.
    ckpt("avg", *[runs[0][0]] * 3, tmp_path / "same")
    ckpt("diff", runs[0][0], tmp_path / "same")
    del runs[0][1]["e"]
    ckpt("avg", save(tmp_path / "less", runs[0][1]), runs[1][0], tmp_path / "x", code=5)


@pytest.mark.parametrize("expression", ["a - b", "a*b/(a + 0.5) - 2*b", "(a*a)/-b"])
def test_math_is_numpys(ckpt, tmp_path, expression):
    rng = np.random.default_rng(3)
    small = [getattr(ml_dtypes, n) for n in ("float8_e5m2", "float8_e4m3fn", "float4_e2m1fn")]

    def values():
        numbers = {d.name: rng.standard_normal((4, 5)).astype(d.as_numpy_dtype) for d in FLOATS}
        numbers |= {np.dtype(d).name: rng.standard_normal((4, 5)).astype(d) for d in small}
        return numbers | {d: (rng.standard_normal((4, 5)) + 1j * rng.standard_normal((4, 5))).astype(d) for d in ("complex64", "complex128")}

    a, b = values(), values()
    paths = [save(tmp_path / n, {k: tf.constant(v) for k, v in vs.items()}) for n, vs in (("a", a), ("b", b))]
    ckpt("math", expression, f"a={paths[0]}", f"b={paths[1]}", tmp_path / "c")
    for name, x in a.items():
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            want = eval(expression, {"a": x.astype(wide), "b": b[name].astype(wide)})
            want = (want.astype(np.float32) if x.dtype.itemsize < 4 else want).astype(x.dtype).astype(wide)
        got = restore(tmp_path / "c", name, tf.as_dtype(x.dtype)).numpy().astype(wide)
        np.testing.assert_allclose(got, want, rtol=1e-15 if x.dtype.itemsize != 8 or x.dtype.kind == "f" else 1e-7, err_msg=name)


def ema_graph():
    graph = tf.Graph()
    with graph.as_default():
        v = tf1.get_variable("layer/w", initializer=np.float32([1, 2, 3]))
        w = tf1.get_variable("layer/b", initializer=np.float32(5))
        step = tf1.train.get_or_create_global_step()
        ema = tf1.train.ExponentialMovingAverage(0.5)
        with tf.control_dependencies([tf1.assign_add(v, [1, 1, 1]), tf1.assign_add(w, 2), tf1.assign_add(step, 1)]):
            train = ema.apply([v, w])
    return graph, ema, train, v, w


def test_ema_is_what_variables_to_restore_loads(ckpt, tmp_path):
    graph, ema, train, v, w = ema_graph()
    with tf1.Session(graph=graph) as sess:
        with graph.as_default():
            saver = tf1.train.Saver()
            sess.run(tf1.global_variables_initializer())
        for _ in range(4):
            sess.run(train)
        path = saver.save(sess, str(tmp_path / "m"), global_step=4)
        with graph.as_default():
            tf1.train.Saver(ema.variables_to_restore()).restore(sess, path)
        want = sess.run([v, w])
        ckpt("ema", path, tmp_path / "swapped")
        ckpt("ema", path, tmp_path / "kept", "--keep")
        with graph.as_default():
            for name, saver in (("swapped", tf1.train.Saver([v, w])), ("kept", tf1.train.Saver())):
                sess.run(tf1.global_variables_initializer())
                saver.restore(sess, str(tmp_path / name))
                for a, b in zip(sess.run([v, w]), want):
                    np.testing.assert_array_equal(a, b)
    assert sorted(n for n, _ in tf.train.list_variables(str(tmp_path / "swapped"))) == ["global_step", "layer/b", "layer/w"]
    ckpt("ema", tmp_path / "swapped", tmp_path / "x", code=5)


def keras_model(optimizer):
    import keras

    keras.utils.set_random_seed(1)
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="hidden"), keras.layers.Dense(1, name="out")])
    model.compile(optimizer, "mse")
    return model


def trained(optimizer, steps=3):
    model = keras_model(optimizer)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        model.train_on_batch(rng.standard_normal((8, 3)), rng.standard_normal((8, 1)))
    return model


def restored(optimizer, prefix):
    model = keras_model(optimizer)
    model.optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=tf.Variable(0))
    return model, state, state.restore(str(prefix))


def test_keras_checkpoint_without_slots(ckpt, tmp_path):
    import keras

    model = trained(keras.optimizers.Adam(0.1))
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=tf.Variable(7)).save(str(tmp_path / "m"))
    ckpt("cp", path, tmp_path / "lean", "--drop-slots")
    names = [n for n, _ in tf.train.list_variables(str(tmp_path / "lean"))]
    assert not [n for n in names if "_variables/2" in n and "_trainable" not in n] and "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE" in names
    other, state, status = restored(keras.optimizers.Adam(0.5), tmp_path / "lean")
    status.expect_partial().assert_existing_objects_matched
    assert state.step.numpy() == 7 and other.optimizer.iterations.numpy() == 3
    for a, b in zip(other.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(a, b)
    assert not other.optimizer._momentums[0].numpy().any()


def test_keras_averages(ckpt, tmp_path):
    import keras

    sgd = lambda: keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.5)  # noqa: E731
    model = trained(sgd())
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=tf.Variable(7)).save(str(tmp_path / "m"))
    want = [v.numpy() for v in model.optimizer._model_variables_moving_average]
    ckpt("ema", path, tmp_path / "swapped", "--keep")
    other, _, status = restored(sgd(), tmp_path / "swapped")
    status.assert_consumed()
    for a, b in zip(other.trainable_variables, want):
        np.testing.assert_array_equal(a.numpy(), b)
    ckpt("ema", path, tmp_path / "lean")
    other, _, status = restored(sgd(), tmp_path / "lean")
    status.expect_partial()
    for a, b in zip(other.trainable_variables, want):
        np.testing.assert_array_equal(a.numpy(), b)


@pytest.mark.parametrize("options", [
    ["--rename", "s/^net/core/"],
    ["--rename", "s|^(.*)/[.]ATT|all/$1/.ATT|", "--shards", "2"],
    ["--exclude", "^extra"],
    ["--only", "^(net|step|save_counter)"],
], ids=["rename", "rename all", "exclude", "only"])  # fmt: skip
def test_object_based_checkpoint_restores(ckpt, tmp_path, options):
    """Objects are found by the graph, wherever their values are; what was left out is not asked for."""

    def objects(a, b):
        net = tf.Module()
        net.w, net.b = tf.Variable(a), tf.Variable(b)
        return tf.train.Checkpoint(net=net, step=tf.Variable(9 if b else 0), extra=tf.Variable(b))

    path = objects([1.0, 2.0], 3.0).save(str(tmp_path / "ckpt"))
    ckpt("cp", path, tmp_path / "copy", *options)
    fresh = objects([0.0, 0.0], 0.0)
    status = fresh.restore(str(tmp_path / "copy"))
    if "--rename" in options:
        status.assert_consumed()
        assert fresh.extra.numpy() == 3
    else:
        status.expect_partial()
        assert fresh.extra.numpy() == 0
    assert fresh.net.w.numpy().tolist() == [1, 2] and fresh.net.b.numpy() == 3 and fresh.step.numpy() == 9


def test_keras_names_in_tree(ckpt, tmp_path):
    import keras

    model = trained(keras.optimizers.Adam(0.1))
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "m"))
    shown = ckpt("tree", path).stdout
    assert "sequential/hidden/kernel" in shown and "adam/learning_rate" in shown and "adam/sequential_hidden_kernel_momentum" in shown


def test_plan_says_what_restore_does(ckpt, tmp_path):
    graph, _, _, v, w = ema_graph()
    with tf1.Session(graph=graph) as sess, graph.as_default():
        sess.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(sess, str(tmp_path / "m"), global_step=1)
        ckpt("plan", path, "--meta", path + ".meta")
        ckpt("cp", path, tmp_path / "less", "--exclude", "^layer/w$")
        ckpt("cp", path, tmp_path / "half", "--dtype", "f16")
        for name, kind in (("less", "miss"), ("half", "mismatch")):
            plan = json.loads(ckpt("plan", tmp_path / name, "--meta", path + ".meta", "--json", code=4).stdout)
            assert {p["name"]: p["kind"] for p in plan}["layer/w"] == kind
            with pytest.raises((tf.errors.NotFoundError, tf.errors.InvalidArgumentError)):
                tf1.train.Saver().restore(sess, str(tmp_path / name))


def test_partitioned_variable_in_parts(ckpt, tmp_path):
    table = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    specs = {"9 4 0,3:-": table[:3], "9 4 3,4:0,2": table[3:7, :2], "9 4 3,4:2,2": table[3:7, 2:], "9 4 7,2:-": table[7:]}
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "a"), tensor_names=["t"] * 4, shape_and_slices=list(specs), tensors=[tf.constant(v) for v in specs.values()])
    ckpt("cp", tmp_path / "a", tmp_path / "b", "--shards", 3, "--rename", "s/t/emb/", "--dtype", "f32")
    np.testing.assert_array_equal(restore(tmp_path / "b", "emb", tf.float32), table)
    ckpt("cp", tmp_path / "a", tmp_path / "c", "--dtype", "bf16")
    np.testing.assert_array_equal(restore(tmp_path / "c", "t", tf.bfloat16), tf.cast(table, tf.bfloat16))
    save(tmp_path / "whole", {"t": tf.constant(table * 3)})
    ckpt("avg", tmp_path / "whole", tmp_path / "a", tmp_path / "avg")
    np.testing.assert_allclose(restore(tmp_path / "avg", "t", tf.float32), table * 2, rtol=1e-6)
