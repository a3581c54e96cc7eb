"""A whole Python process that trains one step of a recorded program in TensorFlow."""
import json
import os
import subprocess
import sys

import common

PROGRAM = """
import sys
meta, init, feeds, op, loss = sys.argv[1:6]
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
saver = tf1.train.import_meta_graph(meta)
with tf1.Session() as sess:
    saver.restore(sess, init)
    reader = tf1.train.load_checkpoint(feeds)
    fed = {name: reader.get_tensor("step_000/" + name.split(":")[0]) for name in sys.argv[6:]}
    print(sess.run([loss, op], fed)[0])
"""

o = common.options("dir")
m = json.load(open(os.path.join(o.dir, "manifest.json")))
out = []


def process():
    args = [sys.executable, "-c", PROGRAM, os.path.join(o.dir, "graph.meta"), os.path.join(o.dir, "init", "model.ckpt-0"),
            os.path.join(o.dir, "feeds", "feeds"), m["train_op"], m["fetches"]["loss"]] + m["feeds"]
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if "No module named 'tensorflow'" in p.stderr:
        print("tensorflow is not installed", file=sys.stderr)
        sys.exit(77)
    if p.returncode:
        sys.exit(p.stderr)
    out.append(float(p.stdout))


r = common.timed(process)
common.report(r, "%s, first loss %.3f" % (m["program"], out[0]))
