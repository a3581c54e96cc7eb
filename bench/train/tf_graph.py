"""Training steps of a recorded program in a TensorFlow 1 session."""
import json
import os

import common

o = common.options("dir", "steps")
common.need("tensorflow")
from tf_session import open_session, tf1

manifest = json.load(open(os.path.join(o.dir, "manifest.json")))
sess = open_session(os.path.join(o.dir, "graph.meta"), o.threads)
sess.run(manifest["init_op"])
reader = tf1.train.load_checkpoint(os.path.join(o.dir, "feeds", "feeds"))
feeds = [{name: reader.get_tensor("step_%03d/%s" % (i, name.split(":")[0])) for name in manifest["feeds"]} for i in range(manifest["steps"])]
op = sess.graph.get_operation_by_name(manifest["train_op"])
turn = [0]


def step():
    sess.run(op, feeds[turn[0] % len(feeds)])
    turn[0] += 1


r = common.train(step, o.steps)
loss = sess.run(manifest["fetches"]["loss"], feeds[0])
common.report(r, "%s, %d steps, loss %.2f" % (manifest["program"], o.steps, loss))
