"""A TensorFlow 1 session on a MetaGraph."""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def open_session(meta, threads):
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    sess = tf1.Session(config=config)
    sess.saver = tf1.train.import_meta_graph(meta)
    return sess
