"""Training steps of a whole network in a TensorFlow 1 session."""
import gzip
import json
import os

import common

o = common.options("net", "steps")
common.need("tensorflow")
import numpy as np
from tf_session import open_session, tf1

graphs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs")
meta = tf1.MetaGraphDef.FromString(gzip.open(os.path.join(graphs, o.net + ".meta.gz")).read())
sess = open_session(meta, o.threads)
sess.run("init")


def value(salt, f):
    if not f["limit"]:
        return common.floats(salt, f["scale"], *f["shape"])
    n = int(np.prod(f["shape"]))
    return (common.uniform(n, salt) * f["limit"]).astype(np.int32).reshape(f["shape"])


described = json.load(open(os.path.join(graphs, "networks.json")))[o.net]
feeds = {f["name"]: value(i + 1, f) for i, f in enumerate(described)}
op = sess.graph.get_operation_by_name("train")
r = common.train(lambda: sess.run(op, feeds), o.steps)
loss = sess.run("loss:0", feeds)
common.report(r, "%s, %d steps, loss %.2f" % (o.net, o.steps, loss))
