"""Summaries, strings, tables, embeddings, attention and the gradient of gradients."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def matrix(n):
    return {"x:0": rng(n).uniform(-1, 1, [6, 4]).astype("f")}


@program
def summaries():
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    h = x * variable("w", [4])
    s = tf1.summary
    s.scalar("element", h[0, 0])
    s.scalar("count", tf.size(h))
    with tf1.name_scope("scope"):
        s.histogram("hidden", h)
        s.histogram("hidden", x, family="inputs")
    s.histogram("ints", tf.cast(h * 10, tf.int32))
    s.text("words", tf.constant(["one", "two"]))
    s.tensor_summary("tensor", h)
    s.scalar("double", tf.cast(h[1, 1], tf.float64))
    return trained({"h": h}, feeds=matrix)


@program
def summary_images():
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    tf1.summary.image("gray", tf.reshape(x, [3, 2, 4, 1]))
    tf1.summary.image("color", tf.abs(tf.reshape(x, [1, 2, 4, 3])), max_outputs=1)
    return Built(None, {}, matrix)


@program
def summary_audio():
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    tf1.summary.audio("sound", tf.reshape(x, [2, 12]), 8000.0)
    return Built(None, {}, matrix)


@program
def strings():
    s = tf.strings
    words = tf.constant(["one two", "3.5", "Four,five", ""])
    out = {
        "join": s.join(["a", words, "z"], "-"),
        "concat": tf1.reduce_join(words, 0, separator="+"),
        "number": s.to_number(["1", "2.5"]),
        "int": s.to_number(["7", "-3"], tf.int64),
        "hash": tf1.string_to_hash_bucket_fast(words, 97),
        "full_match": s.regex_full_match(words, ".*e.*"),
        "chars": tf1.string_split(["a,b;c", "", ";d"], ",;", skip_empty=False).values,
        "replace": s.regex_replace(words, "[aeiou]+", "<\\0>"),
        "match": s.regex_full_match(words, "[a-z ]+"),
        "text": tf1.as_string([1, 22]),
        "float_text": tf1.as_string([1.5, 2.25], precision=3),
        "length": s.length(words),
        "sub": s.substr(words[:3], 1, 2),
        "upper": s.upper(words),
        "lower": s.lower(words),
        "strip": s.strip(["  a "]),
        "format": s.format("x={}", [tf.constant([1, 2])]),
        "equal": tf.equal(words, "3.5"),
        "split": tf1.string_split(["a b", "c"]).values,
        "bytes": tf.io.decode_raw(tf.constant(["ab"]), tf.uint8),
        "base64": tf.io.encode_base64(tf.constant("ab")),
    }
    return Built(None, out)


@program
def rare_strings():
    words = tf.constant(["one two", "3.5", "Four,five", ""])
    return Built(
        None,
        {"legacy": tf1.string_to_hash_bucket(words, 97), "strong": tf.strings.to_hash_bucket_strong(words, 97, [1, 2])},
    )


@program
def tables():
    keys, values = tf.constant(["cat", "dog", "eel"]), tf.constant([3, 1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    ids = table.lookup(tf.constant(["dog", "ant", "cat"]))
    w = variable("w", [4, 2])
    return trained({"ids": ids, "rows": tf.gather(w, ids[::2]), "size": table.size()})


@program
def second_order():
    """A gradient penalty: the gradient of a gradient."""
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    h = tf.nn.softplus(x @ variable("w", [4, 5])) @ variable("v", [5, 1])
    gradient = tf.gradients(h, x)[0]
    norm = tf.sqrt(tf.reduce_sum(tf.square(gradient), 1) + 1e-6)
    loss = tf.reduce_mean(h) + 10 * tf.reduce_mean(tf.square(norm - 1))
    return trained({"norm": norm}, loss, feeds=matrix)


@program
def adversaries():
    """Two optimizers on two sets of variables, run in order."""
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    step = tf1.train.get_or_create_global_step()
    with tf1.variable_scope("generator"):
        made = tf.tanh(tf1.random_normal([6, 3], seed=5) @ variable("g", [3, 4]))

    def judge(v):
        with tf1.variable_scope("judge", reuse=tf1.AUTO_REUSE):
            return tf.nn.leaky_relu(
                v @ tf1.get_variable("a", [4, 5], initializer=tf1.glorot_uniform_initializer(seed=2))
            ) @ tf1.get_variable("b", [5, 1], initializer=tf1.glorot_uniform_initializer(seed=3))

    xent = tf.nn.sigmoid_cross_entropy_with_logits
    real, fake = judge(x), judge(made)
    judge_loss = tf.reduce_mean(
        xent(labels=tf.ones_like(real), logits=real) + xent(labels=tf.zeros_like(fake), logits=fake)
    )
    made_loss = tf.reduce_mean(xent(labels=tf.ones_like(fake), logits=fake))
    judging, making = tf1.train.AdamOptimizer(0.01, 0.5, epsilon=1e-4), tf1.train.RMSPropOptimizer(0.01, epsilon=1e-4)
    first = judging.compute_gradients(judge_loss, tf1.trainable_variables("judge"))
    second = making.compute_gradients(made_loss, tf1.trainable_variables("generator"))
    with tf.control_dependencies([g for g, _ in first + second]):
        train = tf.group(judging.apply_gradients(first), making.apply_gradients(second, step))
    return Built(train, {"judge": judge_loss}, matrix)


@program
def word2vec():
    """Sampled losses on an embedding."""
    ids, context = tf1.placeholder(tf.int32, [None], "ids"), tf1.placeholder(tf.int64, [None, 1], "context")
    table, weights, bias = variable("table", [20, 6]), variable("weights", [20, 6]), variable("bias", [20])
    h = tf.nn.embedding_lookup(table, ids)
    nce = tf.reduce_mean(
        tf1.nn.nce_loss(
            weights,
            bias,
            context,
            h,
            4,
            20,
            sampled_values=(tf.constant([1, 5, 9, 12], tf.int64), tf.ones([8, 1]) * 0.1, tf.ones([4]) * 0.2),
        )
    )
    step = tf1.train.get_or_create_global_step()
    feed = lambda n: {"ids:0": rng(n).randint(0, 20, 8).astype("i"), "context:0": rng(n + 9).randint(0, 20, [8, 1])}
    return Built(tf1.train.AdagradOptimizer(0.5).minimize(nce, step), {"loss": nce}, feed)


@program
def candidate_samplers():
    labels = tf.constant([[1], [7]], tf.int64)
    r = tf1.random
    return Built(
        None,
        {
            "uniform": r.uniform_candidate_sampler(labels, 1, 4, True, 20, seed=1)[0],
            "log": r.log_uniform_candidate_sampler(labels, 1, 4, True, 20, seed=2)[0],
        },
    )


@program
def attention():
    """One transformer block: layer norm, masked multi-head attention, gelu."""
    x = tf1.placeholder(tf.float32, [None, 4], "x")
    h = tf.reshape(x, [2, 3, 4])

    def dense(v, name, n):
        return tf.tensordot(v, variable(name, [int(v.shape[-1]), n]), [[2], [0]]) + variable(name + "_bias", [n])

    def heads(v):
        return tf.transpose(tf.reshape(v, [2, 3, 2, 2]), [0, 2, 1, 3])

    q, k, v = (heads(dense(h, n, 4)) for n in "qkv")
    mask = tf.linalg.band_part(tf.ones([3, 3]), -1, 0)
    scores = tf.matmul(q, k, transpose_b=True) / tf.sqrt(2.0) * mask - 1e9 * (1 - mask)
    mixed = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [2, 3, 4])
    mean, var = tf.nn.moments(mixed + h, [-1], keepdims=True)
    normed = (mixed + h - mean) * tf1.rsqrt(var + 1e-6) * variable("g", [4])
    return trained({"y": normed + dense(tf.nn.gelu(dense(normed, "f", 8)), "o", 4)}, feeds=matrix)
