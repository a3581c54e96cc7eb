"""Checkpoints as real TensorFlow sees them."""

import contextlib
import re

import tensorflow as tf

tf1 = tf.compat.v1


def variables(prefix):
    """{name: numpy array} of everything that a checkpoint holds."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def latest(logdir):
    """The prefix that TensorFlow would restore, as text."""
    prefix = tf.train.latest_checkpoint(str(logdir))
    assert prefix, f"{logdir}: TensorFlow finds no checkpoint"
    return prefix


def step_of(prefix):
    """The step in a prefix; TensorFlow names a V1 checkpoint of several files by a pattern, as model.ckpt-5-?????-of-00002."""
    return int(re.search(r"-(\d+)(-\?{5}-of-\d{5})?$", str(prefix))[1])


def on_disk(logdir):
    """The prefixes in logdir, whether or not `checkpoint` names them, by step."""
    return sorted((str(p.with_suffix("")) for p in logdir.glob("model.ckpt-*.index")), key=step_of)


def graph_def(prefix):
    """The graph that was saved with a checkpoint."""
    meta = tf1.MetaGraphDef()
    with open(f"{prefix}.meta", "rb") as file:
        meta.ParseFromString(file.read())
    return meta.graph_def


def same_bits(a, b):
    """The names whose values are not the same, bit for bit, in both checkpoints; empty when all are."""
    left, right = variables(a), variables(b)
    different = set(left) ^ set(right)
    for name in set(left) & set(right):
        x, y = left[name], right[name]
        if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
            different.add(name)
    return sorted(different)


class Model:
    """The graph of prefix.meta with the variables of the checkpoint, in a TensorFlow session; a context manager.

    Without restore the variables get their initial values.
    """

    def __init__(self, prefix, restore=True):
        self._prefix = str(prefix)
        self._restore = restore

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.graph = tf.Graph()
            stack.enter_context(self.graph.as_default())
            self.session = stack.enter_context(tf1.Session(graph=self.graph))
            self.saver = tf1.train.import_meta_graph(f"{self._prefix}.meta")
            if self._restore:
                self.saver.restore(self.session, self._prefix)
            else:
                self.session.run(tf1.get_collection(tf1.GraphKeys.INIT_OP))
            (self.train_op,) = tf1.get_collection(tf1.GraphKeys.TRAIN_OP)
            self.loss = self.summarised("loss")
            self.accuracy = self.summarised("accuracy")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def summarised(self, tag):
        """The tensor that is shown in TensorBoard as the scalar tag."""
        summaries = [op for op in self.graph.get_operations() if op.type == "ScalarSummary"]
        by_tag = {tf.get_static_value(op.inputs[0]).item().decode(): op.inputs[1] for op in summaries}
        return by_tag[tag]

    def step(self):
        return int(self.session.run(tf1.train.get_global_step(self.graph)))

    def run(self, fetches, x, y):
        return self.session.run(fetches, {"x:0": x, "y:0": y})
