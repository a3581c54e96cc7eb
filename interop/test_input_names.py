"""Columns may be called anything: the exported SavedModel loads in TensorFlow 2, TensorFlow 1's loader and Keras.

Its inputs, whatever they are called there, give what `trainerd predict` and `trainerd serve` give for the columns' own
names.
"""

import builtins
import csv
import io
import json
import keyword
import random
import signal
import subprocess
import unicodedata
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

tf1 = tf.compat.v1

WORDS = keyword.kwlist + keyword.softkwlist + [word for word in dir(builtins) if word.islower()]
OF_TENSORFLOW = """self cls args kwargs name inputs training mask x x_1 features label prediction classes probabilities
class_names signature function_type cancellation_manager captured_inputs default_values fn graph index columns serving""".split()
EQUAL = ["class_", "class__", "a.b", "a_b", "a b", "a.b_", "a-b", "a_b_", "a@b", "1a", "arg_1a", "_x", "arg__x", "__x__", "_", "__", "fi", "ﬁ"]
ODD = ["123abc", "9", "²", "m²", "m_", "x½", "①", "Ⅷ", "_²", "area (m²)", "é", "e\u0301", "größe", "имя", "名前", "नाम", "ﷺ", "ํา", "ำx", "😀", "😃", "ﾞa",
       "a/b", "a\\b", "a:b", "a;b", "a=b", "a[b]", "a,b", 'a"b', "a'b", "a\tb", "a%b", "^a", "a:0", "$a", "a\nb", "\u200b", "a\u00a0b", "İ", "long" * 2000, "l " * 999 + "."]
LETTERS = "ab_.1 ²é-"


def names_of(kind):
    if kind == "random":
        pick = random.Random(19)
        made = ["".join(pick.choices(LETTERS, k=pick.randint(1, 4))).strip() for _ in range(400)]
    else:
        made = {"words": WORDS, "TensorFlow's, equal and odd": OF_TENSORFLOW + EQUAL + ODD}[kind]
    return [name for name in dict.fromkeys(made) if name]


def seen(names):
    """The names as trainerd has them: composed, without what nobody sees; those without a name, and equal ones, are numbered."""
    count, made = {}, []
    for i, name in enumerate(names):
        name = unicodedata.normalize("NFC", name.replace("\u200b", "")) or f"Unnamed: {i}"
        count[name] = count.get(name, -1) + 1
        made.append(f"{name}.{count[name]}" if count[name] else name)
    return made


def inputs_in_order(meta):
    """The keys of the inputs in the order of the schema's columns, by the graph that puts them together."""
    nodes = {n.name: n for n in meta.graph_def.node}
    keys = {info.name.removesuffix(":0"): key for key, info in meta.signature_def["serving_default"].inputs.items()}

    def find(tensor):
        name = tensor.split(":")[0]
        return keys.get(name) or next(filter(None, map(find, nodes[name].input)), None)

    return list(filter(None, map(find, nodes["serving/stack"].input)))


@pytest.mark.parametrize("kind", ["words", "TensorFlow's, equal and odd", "random"])
def test_any_name(kind, bin_dir, tmp_path):
    names, pick = names_of(kind), random.Random(1)
    rows = [[pick.choice(["red", "green"]), *(f"{pick.gauss(0, 1):.3f}" for _ in names), pick.choice(["yes", "no"])] for _ in range(60)]
    with open(tmp_path / "rows.csv", "w", newline="") as f:
        csv.writer(f).writerows([["the colour of it"] + names + ["the label"]] + rows)

    def trainerd(*words):
        out = subprocess.run([bin_dir / "trainerd", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        return out.stdout

    trainerd("init", "rows.csv", "--label", "the label")
    trainerd("run", "rows.toml", "--set", "train.steps=3")
    trainerd("export", "logs/rows", "saved")
    lines = list(csv.reader(io.StringIO(trainerd("predict", "saved", "rows.csv"))))
    want = np.array([[float(v) for v in line[1:]] for line in lines[1:]])

    meta = SavedModel.FromString((tmp_path / "saved/saved_model.pb").read_bytes()).meta_graphs[0]
    own = [f["name"] for f in json.loads(meta.collection_def["trainerd_schema"].bytes_list.value[0])["features"]]
    keys = inputs_in_order(meta)
    assert len(own) > 0.9 * len(names) and len(set(keys)) == len(keys) == len(own)  # names such as id are left out
    columns = dict(zip(seen(["the colour of it"] + names), zip(*rows)))
    columns = [np.array(columns[name], object if i == 0 else np.float32) for i, name in enumerate(own)]
    feeds = dict(zip(keys, columns))

    loaded = tf.saved_model.load(str(tmp_path / "saved")).signatures["serving_default"]
    out = loaded(**{key: tf.constant(v) for key, v in feeds.items()})
    np.testing.assert_allclose(out["probabilities"], want, atol=1e-5)
    with tf.Graph().as_default(), tf1.Session() as sess:
        signature = tf1.saved_model.load(sess, ["serve"], str(tmp_path / "saved")).signature_def["serving_default"]
        out = sess.run(signature.outputs["probabilities"].name, {signature.inputs[key].name: v for key, v in feeds.items()})
        np.testing.assert_allclose(out, want, atol=1e-5)
    pytest.importorskip("keras").layers.TFSMLayer(str(tmp_path / "saved"), call_endpoint="serving_default")

    server = subprocess.Popen([bin_dir / "trainerd", "serve", "saved", "--listen", "127.0.0.1:0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split(" at ")[1].strip()
        for called in (own, keys):
            instances = [dict(zip(called, row)) for row in zip(*(column.tolist() for column in columns))]
            with urllib.request.urlopen(url, json.dumps({"instances": instances}).encode(), timeout=60) as answer:
                got = [row["probabilities"] for row in json.load(answer)["predictions"]]
            np.testing.assert_allclose(got, want, atol=1e-5)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
