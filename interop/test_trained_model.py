"""A trained model on raw rows: every way to use it gives the same predictions.

`trainerd predict`, `trainerd serve`, the exported SavedModel in TensorFlow 2 and 1, Keras 3 and 2 (tf_keras where it is
installed), the checkpoint's MetaGraph in TensorFlow 1's API, and the formulas in numpy.
"""

import csv
import datetime
import importlib
import importlib.util
import json
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.keras import models as tensorflow_keras

tf1 = tf.compat.v1

COLOURS = ["blue", "green", "red"]
CITIES = [f"city {i}" for i in range(150)]  # more than are given as zeros and a one
NOTES = ["Sehr GUT, danke!", "one two three four five six seven eight nine gut", "good; really good", "nicht gut: schlecht", "東京 was good", "ΟΔΟΣ gut, ΟΔΟΣ", "", "don't know"]
WORDS = ("colour", "city", "note")  # the columns that are given as strings
ROWS = 160

JOB = """
logdir = "logs"
[data]
file = "rows.csv"
header = true
label = "{label}"
missing = "fill"
categories = [{categories}]
drop = [{drop}]
dates = {{ day = "%Y-%m-%d" }}
normalize = "{normalize}"
test_fraction = 0.2
batch_size = 16
[model]
family = "{family}"
optimizer = "adam"
learning_rate = 0.02
seed = 1
[train]
epochs = 30
"""

PARTS = "data.date_parts={ day = ['weekday', 'month', 'day'] }"
TEXTS = "data.texts=['note']"

# Each: the label, the columns of words, those left out, and the rest of [model].
MODELS = {
    "softmax, words": ("kind", ["colour", "kind"], ["price", "city", "note"], "softmax", "standard", []),
    "mlp, embedding": ("kind", ["colour", "city", "kind"], ["price", "note"], "mlp", "standard", ["model.hidden=[8]", PARTS]),
    "logistic, numbers": ("big", [], ["colour", "city", "kind", "price", "note"], "logistic", "minmax", []),
    "linear, numbers": ("price", [], ["colour", "city", "kind", "big", "note"], "linear", "standard", [PARTS]),
    "linear, words": ("price", ["colour"], ["city", "kind", "big", "note"], "linear", "", []),
    "softmax, texts": ("kind", ["colour", "kind"], ["price", "city"], "softmax", "standard", [TEXTS]),
    "linear, texts, huber": ("price", [], ["colour", "city", "kind", "big"], "linear", "minmax", [TEXTS, "model.loss=huber_loss"]),
}


def make_rows():
    rng = np.random.default_rng(3)
    rows = []
    for i in range(ROWS):
        width, colour = rng.normal(50, 8), COLOURS[rng.integers(3)]
        rows.append({
            "width": f"{width:.2f}" if i % 13 else "", "colour": colour, "day": f"2020-0{1 + i % 9}-1{i % 7}",
            "city": CITIES[i % len(CITIES)], "big": str(int(width > 50)),
            "kind": ["small", "large"][int(width > 50)] if colour != "red" else "other",
            "price": f"{3000 * width + 100000 * COLOURS.index(colour):.0f}",
            "note": NOTES[rng.integers(len(NOTES))],
        })
    return rows


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys())
        w.writeheader()
        w.writerows(rows)


@pytest.fixture(scope="module", params=MODELS, ids=lambda name: name)
def trained(request, bin_dir, tmp_path_factory):
    """A trained and exported model: its folder, label, features and the rows to predict."""
    label, categories, drop, family, normalize, settings = MODELS[request.param]
    folder = tmp_path_factory.mktemp("trained")
    rows = make_rows()
    write_csv(folder / "rows.csv", rows)
    quoted = lambda names: ", ".join(f'"{n}"' for n in names)
    (folder / "job.toml").write_text(JOB.format(label=label, categories=quoted(categories), drop=quoted(drop), family=family, normalize=normalize))

    def trainerd(*args):
        out = subprocess.run([bin_dir / "trainerd", *args], cwd=folder, capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        return out.stdout

    trainerd("run", "job.toml", *[word for s in settings for word in ("--set", s)])
    trainerd("export", "logs", "saved/1")
    features = [n for n in rows[0] if n != label and n not in drop]
    new = [dict(r) for r in rows[:40]]
    new[3]["colour"], new[4]["city"], new[5]["colour"], new[6]["note"] = "pink", "Rome", "", "GUT unknown"
    if normalize != "":
        new[6]["width"] = ""
    write_csv(folder / "new.csv", [{k: r[k] for k in reversed(list(r)) if k != label} for r in new])
    lines = list(csv.reader(trainerd("predict", "logs", "new.csv").splitlines()))
    return {"folder": folder, "label": label, "features": features, "new": new, "header": lines[0],
            "lines": lines[1:], "parts": PARTS in settings, "words": bool(set(categories) - {label}) or TEXTS in settings, "trainerd": trainerd}


def days(text):
    return float((np.datetime64(text) - np.datetime64("1970-01-01")).astype(int))


def value(name, text):
    if name in WORDS:
        return text
    if text == "":
        return float("nan")
    return days(text) if name == "day" else float(text)


def compare(trained, out):
    """Compares outputs of the signature with what trainerd predict has printed."""
    lines = trained["lines"]
    if "prediction" in out:
        want = np.array([float(line[0]) for line in lines])
        np.testing.assert_allclose(np.asarray(out["prediction"]), want, rtol=1e-5)
        return
    want = np.array([[float(v) for v in line[1:]] for line in lines])
    np.testing.assert_allclose(np.asarray(out["probabilities"]), want, atol=1e-5)
    names = out.get("class_names")
    if names is not None:
        assert [n.decode() if isinstance(n, bytes) else n for n in np.asarray(names).tolist()] == [line[0] for line in lines]


def inputs_of(trained):
    """The inputs of the signature, as arrays."""
    if not trained["words"]:
        return {"x": np.array([[value(n, r[n]) for n in trained["features"]] for r in trained["new"]], np.float32)}
    return {n: np.array([value(n, r[n]) for r in trained["new"]], object if n in WORDS else np.float32)
            for n in trained["features"]}


# What loads a SavedModel as an object with signatures. The package tf_keras, Keras 2, cannot be installed next to
# tensorflow-cpu without a second TensorFlow, so the suite does without; TensorFlow has a copy of its loader.
LOADERS = {"TensorFlow": tf.saved_model.load, "Keras 2 in TensorFlow": tensorflow_keras.load_model}
if importlib.util.find_spec("tf_keras"):
    LOADERS["tf_keras"] = importlib.import_module("tf_keras").models.load_model


@pytest.mark.parametrize("loader", LOADERS)
def test_saved_model(trained, loader):
    loaded = LOADERS[loader](str(trained["folder"] / "saved/1"))
    out = loaded.signatures["serving_default"](**{k: tf.constant(v) for k, v in inputs_of(trained).items()})
    compare(trained, {k: v.numpy() for k, v in out.items()})


def test_saved_model_in_session(trained):
    """TensorFlow 1's loader, which is also how TensorFlow Serving loads: the tag, the signature and the init op."""
    with tf.Graph().as_default(), tf1.Session() as sess:
        signature = tf1.saved_model.load(sess, ["serve"], str(trained["folder"] / "saved/1")).signature_def["serving_default"]
        feeds = {signature.inputs[k].name: v for k, v in inputs_of(trained).items()}
        compare(trained, sess.run({k: t.name for k, t in signature.outputs.items()}, feeds))


def test_keras_layer(trained):
    """Keras calls a signature with one input; those with several are called by name, as in test_saved_model."""
    keras = pytest.importorskip("keras")
    layer = keras.layers.TFSMLayer(str(trained["folder"] / "saved/1"), call_endpoint="serving_default")
    if not trained["words"]:
        out = layer(inputs_of(trained)["x"])
        compare(trained, {k: v.numpy() for k, v in out.items()})


def test_checkpoint(trained):
    """The MetaGraph of the checkpoint takes raw rows itself, with TensorFlow 1's API."""
    prefix = tf.train.latest_checkpoint(str(trained["folder"] / "logs"))
    signature = tf1.MetaGraphDef.FromString(pathlib.Path(prefix + ".meta").read_bytes()).signature_def["serving_default"]
    with tf.Graph().as_default(), tf1.Session() as sess:
        tf1.train.import_meta_graph(prefix + ".meta").restore(sess, prefix)
        sess.run(tf1.tables_initializer())
        feeds = {signature.inputs[k].name: v for k, v in inputs_of(trained).items()}
        out = sess.run({k: t.name for k, t in signature.outputs.items()}, feeds)
    compare(trained, out)


def collection(prefix, key):
    return tf1.MetaGraphDef.FromString(pathlib.Path(prefix + ".meta").read_bytes()).collection_def[key].bytes_list.value[0]


def tf_idf(texts, words, weights):
    """The words that each text has, weighted, with length 3."""
    has = np.zeros((len(texts), len(words)))
    for row, text in enumerate(texts):
        for word in re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+", text.lower().replace("ς", "σ")):
            if word in words:
                has[row, words.index(word)] = weights[words.index(word)]
    return 3 * has / np.maximum(np.linalg.norm(has, axis=1, keepdims=True), 1e-6)


def test_numpy(trained):
    """The formulas, from the variables of the checkpoint alone."""
    prefix = tf.train.latest_checkpoint(str(trained["folder"] / "logs"))
    r = tf.train.load_checkpoint(prefix)
    has = r.get_variable_to_shape_map()
    get = r.get_tensor
    numbers = [n for n in trained["features"] if n not in WORDS]
    x = np.array([[value(n, row[n]) for n in numbers] for row in trained["new"]], np.float64)
    if "normalization/variance" in has:
        z = (x - get("normalization/mean")) / np.sqrt(get("normalization/variance"))
        z = np.where(np.isnan(z), 0, z)
    elif "normalization/range" in has:
        x = np.where(np.isnan(x), get("normalization/mean"), x)
        z = (x - get("normalization/minimum")) / get("normalization/range")
    else:
        z = np.where(np.isnan(x), get("imputation/mean"), x)
    parts = [z]
    if trained["parts"]:
        on = [datetime.date.fromisoformat(row["day"]) for row in trained["new"]]
        parts += [np.eye(7)[[d.weekday() for d in on]], np.eye(12)[[d.month - 1 for d in on]], np.eye(31)[[d.day - 1 for d in on]]]
    for name, words in (("colour", COLOURS), ("city", sorted(CITIES))):
        if name not in trained["features"]:
            continue
        at = [words.index(row[name]) if row[name] in words else -1 for row in trained["new"]]
        table = get(f"embedding/{name}") if f"embedding/{name}" in has else np.eye(len(words))
        parts.append(np.array([table[i] if i >= 0 else np.zeros(table.shape[1]) for i in at]))
    if "tfidf/note" in has:
        schema = json.loads(collection(prefix, "trainerd_schema"))
        words = next(f["vocabulary"] for f in schema["features"] if f["name"] == "note")
        parts.append(tf_idf([row["note"] for row in trained["new"]], words, get("tfidf/note")))
    h = np.concatenate(parts, axis=1)
    if "hidden/kernel" in has:
        h = np.maximum(h @ get("hidden/kernel") + get("hidden/bias"), 0)
    last = "linear" if "linear/kernel" in has else "logits"
    out = h @ get(last + "/kernel") + get(last + "/bias")
    if last == "linear":
        deviation, middle = np.sqrt(get("label/variance")) if "label/variance" in has else get("label/deviation"), get("label/mean" if "label/mean" in has else "label/median")
        compare(trained, {"prediction": out[:, 0] * deviation + middle})
        return
    if out.shape[1] == 1:
        out = np.concatenate([np.zeros_like(out), out], axis=1)
    e = np.exp(out - out.max(axis=1, keepdims=True))
    compare(trained, {"probabilities": e / e.sum(axis=1, keepdims=True)})


def test_serve(trained, bin_dir):
    """trainerd serve answers rows and columns as TensorFlow Serving does, from the logdir and from the SavedModel."""
    clean = lambda v: None if isinstance(v, float) and np.isnan(v) else v
    objects = [{n: clean(value(n, r[n])) for n in trained["features"]} for r in trained["new"]]
    for path in ("logs", "saved"):
        server = subprocess.Popen([bin_dir / "trainerd", "serve", path, "--listen", "127.0.0.1:0", "--name", "m"], cwd=trained["folder"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = server.stdout.readline().split(" at ")[1].strip()

            def post(body):
                with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=60) as answer:
                    return json.load(answer)

            rows = post({"instances": objects})["predictions"]
            if isinstance(rows[0], dict):
                compare(trained, {k: [row[k] for row in rows] for k in rows[0]})
            else:
                compare(trained, {"prediction": rows})
            columns = {k: [clean(v) for v in t] for k, t in ((n, [o[n] for o in objects]) for n in trained["features"])}
            if not trained["words"]:
                columns = {"x": [[o[n] for n in trained["features"]] for o in objects]}
            out = post({"inputs": columns})["outputs"]
            compare(trained, out if isinstance(out, dict) else {"prediction": out})
            with pytest.raises(urllib.error.HTTPError) as wrong:
                post({"instances": [{"width": "wide"}]})
            assert wrong.value.code == 400 and "error" in json.load(wrong.value)
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0


def test_graph_run(bin_dir, tmp_path):
    """trainerd graph run takes what TensorFlow 2 and Keras save, and a frozen graph."""
    keras = pytest.importorskip("keras")
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    class Module(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.random.stateless_normal([5, 2], (1, 2)))
            self.words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1], tf.int64), tf.constant([10, 20], tf.int64)), -1)

        @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float32)])
        def __call__(self, x):
            y = x @ self.w
            return {"y": y, "word": self.words.lookup(tf.argmax(y, 1))}

    x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    module = Module()
    tf.saved_model.save(module, str(tmp_path / "module"), signatures=module.__call__)
    layers = keras.Sequential([keras.layers.Input((5,), name="x"), keras.layers.Dense(4, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    layers.export(str(tmp_path / "layers"), verbose=False)
    frozen = convert_variables_to_constants_v2(tf.function(lambda x: x @ module.w).get_concrete_function(tf.TensorSpec([None, 5], tf.float32, name="x")))
    tf.io.write_graph(frozen.graph, str(tmp_path), "frozen.pb", as_text=False)
    want = {"module": {k: v.numpy() for k, v in module(x).items()}, "layers": {"output_0": layers(x).numpy()},
            "frozen.pb": {frozen.outputs[0].name: (x @ module.w.numpy())}}
    for name, outputs in want.items():
        fetch = ["--fetch", frozen.outputs[0].name] if name == "frozen.pb" else []
        out = subprocess.run([bin_dir / "trainerd", "graph", "run", name, "--feed", "x=x.npy", "--json", *fetch], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        got = json.loads(out.stdout)["fetches"]
        assert got.keys() == outputs.keys()
        for key, v in outputs.items():
            np.testing.assert_allclose(np.array(got[key]), v, rtol=1e-5, atol=1e-5)
