"""Training steps of the same MetaGraph in a TensorFlow 1 session."""
import os

import common

o = common.options("net", "steps")
common.need("tensorflow")
from tf_session import open_session, tf1

sess = open_session(os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs", o.net + ".meta"), o.threads)
graph = sess.graph
for i, values in enumerate(common.net_values(o.net)):
    for name, value in zip("wb", values):
        sess.run("%s%d/Assign" % (name, i), {graph.get_operation_by_name("%s%d/Assign" % (name, i)).inputs[1]: value})
sess.run(tf1.variables_initializer([v for v in tf1.global_variables() if v.op.name == "global_step"]))
x, y = common.net_feeds(o.net)
feeds, op = {"x:0": x, "y:0": y}, graph.get_operation_by_name("train")
r = common.train(lambda: sess.run(op, feeds), o.steps)
common.report_net(r, o, sess.run("loss:0", feeds))
