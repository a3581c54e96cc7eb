"""Networks: convolutions, pooling, normalisation, dropout and activations."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def images(shape=(None, 8, 8, 3), dtype=tf.float32):
    x = tf1.placeholder(dtype, shape, "x")
    size = [5 if d is None else d for d in shape]
    return x, lambda n: {"x:0": rng(n).uniform(-1, 1, size).astype(dtype.as_numpy_dtype)}


@program
def convolutions():
    x, feeds = images()
    conv = tf1.nn.conv2d
    w, b = variable("w", [3, 3, 3, 4]), variable("b", [4])
    out = {
        "same": tf.nn.bias_add(conv(x, w, [1, 1, 1, 1], "SAME"), b),
        "valid": conv(x, w, [1, 2, 2, 1], "VALID"),
        "stride": conv(x, variable("w2", [2, 4, 3, 2]), [1, 3, 2, 1], "SAME"),
        "dilated": conv(x, tf.stop_gradient(w), [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1]),
        "explicit": conv(x, w, [1, 1, 1, 1], [[0, 0], [2, 1], [0, 3], [0, 0]]),
        "one": conv(x, variable("w1", [1, 1, 3, 5]), [1, 1, 1, 1], "VALID"),
        "depthwise": tf1.nn.depthwise_conv2d(x, variable("dw", [3, 3, 3, 2]), [1, 1, 1, 1], "SAME"),
        "depthwise_valid": tf1.nn.depthwise_conv2d(x, variable("dw2", [2, 3, 3, 1]), [1, 2, 2, 1], "VALID"),
        "separable": tf1.nn.separable_conv2d(
            x, variable("sd", [3, 3, 3, 2]), variable("sp", [1, 1, 6, 4]), [1, 1, 1, 1], "SAME"
        ),
        "transposed": tf1.nn.conv2d_transpose(
            conv(x, w, [1, 2, 2, 1], "SAME"), variable("t", [3, 3, 2, 4]), [5, 8, 8, 2], [1, 2, 2, 1]
        ),
        "atrous": tf1.nn.atrous_conv2d(x, w, 2, "VALID"),
        "conv1d": tf1.nn.conv1d(x[:, :, 0, :], variable("w3", [3, 3, 4]), 2, "SAME"),
    }
    return trained(out, feeds=feeds)


@program
def convolutions_3d():
    x, feeds = images((None, 4, 5, 6, 2))
    out = {
        "conv": tf1.nn.conv3d(x, variable("w", [3, 2, 3, 2, 3]), [1, 1, 2, 1, 1], "SAME"),
        "valid": tf1.nn.conv3d(x, variable("w2", [2, 2, 2, 2, 2]), [1, 1, 1, 1, 1], "VALID"),
        "max": tf1.nn.max_pool3d(tf.tanh(x * variable("s", [2])), 2, 2, "SAME"),
        "average": tf1.nn.avg_pool3d(x * variable("s2", [2]), [2, 3, 2], 2, "VALID"),
    }
    return trained(out, feeds=feeds)


@program
def pooling():
    x, feeds = images()
    h = x * variable("scale", [3])
    out = {
        "max": tf1.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "max_same": tf1.nn.max_pool(h, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
        "average": tf1.nn.avg_pool(h, [1, 3, 2, 1], [1, 2, 2, 1], "SAME"),
        "average_valid": tf1.nn.avg_pool(h, [1, 3, 3, 1], [1, 1, 1, 1], "VALID"),
        "max1d": tf1.nn.max_pool1d(h[:, 0], 2, 2, "VALID"),
        "global": tf.reduce_mean(h, [1, 2]),
        "global_max": tf.reduce_max(h, axis=[1, 2]),
        "upsampled": tf1.image.resize_nearest_neighbor(h, [16, 12]),
        "bilinear": tf1.image.resize_bilinear(h, [5, 11]),
        "bilinear_corners": tf1.image.resize_bilinear(h, [11, 5], align_corners=True),
        "bilinear_v2": tf.image.resize(h, [6, 9]),
    }
    return trained(out, feeds=feeds)


@program
def pooling_with_argmax():
    x, feeds = images()
    y, at = tf1.nn.max_pool_with_argmax(x * variable("scale", [3]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return trained({"y": y, "at": at}, feeds=feeds)


@program
def batch_norm_fused():
    """Training and inference, with the moving averages of the contrib and layers styles."""
    x, feeds = images()
    gamma, beta = variable("gamma", [3]), variable("beta", [3])
    mean = tf1.get_variable("mean", [3], initializer=tf1.zeros_initializer(), trainable=False, use_resource=False)
    var = tf1.get_variable("var", [3], initializer=tf1.ones_initializer(), trainable=False, use_resource=False)
    y, m, v = tf1.nn.fused_batch_norm(x + variable("scale", [8, 8, 3]), gamma, beta, epsilon=1e-3)
    frozen, _, _ = tf1.nn.fused_batch_norm(
        y, gamma, beta, tf.constant([0.1, 0.2, 0.3]), tf.constant([1.0, 2.0, 0.5]), is_training=False
    )
    for moving, value in ((mean, m), (var, v)):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(moving, (moving - value) * 0.1))
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        y = tf.identity(y)
    return trained({"y": y, "frozen": frozen, "m": m, "v": v}, feeds=feeds)


@program
def batch_norm_by_parts():
    x, feeds = images((None, 6))
    h = x @ variable("w", [6, 4])
    training = tf1.placeholder_with_default(True, [], "training")
    moving = [
        tf1.get_variable(n, [4], initializer=tf1.zeros_initializer(), trainable=False, use_resource=True)
        for n in ("mean", "var")
    ]
    m, v = tf.nn.moments(h, [0])

    def update():
        ops = [tf1.assign(a, a * 0.9 + b * 0.1) for a, b in zip(moving, (m, v))]
        with tf.control_dependencies(ops):
            return tf.identity(m), tf.identity(v)

    m, v = tf.cond(training, update, lambda: (moving[0].read_value(), moving[1].read_value()))
    y = tf.nn.batch_normalization(h, m, v, variable("beta", [4]), variable("gamma", [4]), 1e-3)
    layer = tf.nn.moments(h, [-1], keepdims=True)
    normed = (h - layer[0]) * tf1.rsqrt(layer[1] + 1e-5)
    feed = lambda n: {**feeds(n), **({"training:0": False} if n == 2 else {})}
    return trained({"y": tf.nn.relu(y), "layer": normed}, feeds=feed)


@program
def normalizers():
    x, feeds = images()
    h = x * variable("scale", [3])
    big = tf.concat([h, h * 2, h + 1], 3)
    out = {
        "lrn": tf.nn.local_response_normalization(big, 2, bias=1.5, alpha=0.3, beta=0.6),
        "lrn_default": tf1.nn.lrn(big),
        "l2": tf.nn.l2_normalize(h, axis=3),
        "l2_all": tf.nn.l2_normalize(h, axis=[1, 2]),
        "centered": h - tf.reduce_mean(h, [1, 2], keepdims=True),
        "weighted": tf.nn.weighted_moments(h, [0, 1], tf.ones([5, 8, 1, 3]) * 0.5)[1],
    }
    return trained(out, feeds=feeds)


@program
def activations():
    x, feeds = images((None, 6))
    h = x @ variable("w", [6, 9], scale=3.0)
    cube = h + 0.044715 * tf.pow(h, 3)
    out = {
        "relu": tf.nn.relu(h),
        "relu6": tf.nn.relu6(h * 3),
        "elu": tf.nn.elu(h),
        "selu": tf.nn.selu(h),
        "leaky": tf.nn.leaky_relu(h, 0.3),
        "softplus": tf.nn.softplus(h),
        "softsign": tf.nn.softsign(h),
        "tanh": tf.nn.tanh(h),
        "sigmoid": tf.nn.sigmoid(h),
        "crelu": tf1.nn.crelu(h),
        "gelu": tf.nn.gelu(h),
        "gelu_tanh": 0.5 * h * (1 + tf.tanh(0.7978845608 * cube)),
        "gelu_approximate": tf.nn.gelu(h, approximate=True),
        "swish": h * tf.sigmoid(h),
        "mish": h * tf.tanh(tf.nn.softplus(h)),
        "hard_sigmoid": tf.clip_by_value(0.2 * h + 0.5, 0.0, 1.0),
        "maxout": tf.reduce_max(tf.reshape(h, [-1, 3, 3]), axis=2),
        "prelu": tf.maximum(0.0, h) + variable("alpha", [9]) * tf.minimum(0.0, h),
        "softmax": tf.nn.softmax(h),
        "softmax3": tf.nn.softmax(tf.reshape(h, [-1, 3, 3]), axis=1),
        "log_sigmoid": tf.math.log_sigmoid(h),
    }
    return trained(out, feeds=feeds)


@program
def swish_function():
    """tf.nn.silu, whose gradient is a function of the library."""
    x, feeds = images((None, 6))
    return trained({"y": tf.nn.silu(x @ variable("w", [6, 4]))}, feeds=feeds)


@program
def dropout():
    x, feeds = images((None, 20))
    h = x @ variable("w", [20, 30])
    out = {
        "dropout": tf1.nn.dropout(h, rate=0.4, seed=3),
        "keep": tf1.nn.dropout(h, keep_prob=0.8, seed=4),
        "noise": tf1.nn.dropout(h, rate=0.5, noise_shape=[1, 30], seed=5),
        "by_graph_seed": tf1.nn.dropout(h, rate=0.3),
        "double": tf1.nn.dropout(tf.cast(h, tf.float64), rate=0.3, seed=9),
    }
    return trained(out, feeds=feeds)


@program
def convnet():
    """LeNet-like, with batch norm, dropout, weight decay, Adam and partly frozen variables."""
    x, feeds = images((None, 12, 12, 1))
    y = tf1.placeholder(tf.int32, [None], "y")
    step = tf1.train.get_or_create_global_step()
    h = tf.nn.relu(
        tf1.nn.conv2d(x, variable("c1/kernel", [5, 5, 1, 6]), [1, 1, 1, 1], "SAME") + variable("c1/bias", [6])
    )
    h = tf1.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h, _, _ = tf1.nn.fused_batch_norm(h, variable("bn/gamma", [6]), variable("bn/beta", [6]))
    h = tf.nn.elu(tf1.nn.conv2d(h, variable("c2/kernel", [3, 3, 6, 8]), [1, 2, 2, 1], "VALID"))
    h = tf1.nn.avg_pool(h, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    h = tf.reshape(h, [-1, h.shape[1] * h.shape[2] * 8])
    h = tf1.nn.dropout(tf.nn.relu(h @ variable("d/kernel", [int(h.shape[1]), 16])), rate=0.3, seed=8)
    logits = h @ variable("out", [16, 3]) + variable("out_bias", [3])
    decay = 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables() if "kernel" in v.name])
    loss = tf.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)) + decay
    tf1.summary.scalar("loss", loss)
    feed = lambda n: {**feeds(n), "y:0": rng(n).randint(0, 3, 5).astype("i")}
    optimizer = tf1.train.AdamOptimizer(0.01, epsilon=1e-4)
    pairs = optimizer.compute_gradients(loss)
    with tf.control_dependencies([loss]):
        train = optimizer.apply_gradients(pairs, step)
    return Built(train, {"loss": loss, "logits": logits}, feed)


@program
def half_precision():
    x, feeds = images((None, 6))
    w = variable("w", [6, 4])
    half = tf.cast(x, tf.float16)
    brain = tf.cast(x, tf.bfloat16)
    out = {
        "half": tf.cast(half, tf.float32) @ w,
        "brain": tf.cast(brain, tf.float32) @ w,
        "raw_half": half,
        "raw_brain": brain,
        "from_half": tf.cast(tf.cast(x @ w, tf.float16), tf.float32),
        "ints": tf.cast(half, tf.int32),
    }
    return trained(out, feeds=feeds)


@program
def double_precision():
    x, feeds = images((None, 6, 6, 2), tf.float64)
    w = variable("w", [3, 3, 2, 3], dtype=tf.float64)
    h = tf.nn.relu(tf1.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
    out = {
        "pooled": tf1.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        "average": tf1.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "softmax": tf.nn.softmax(tf.reshape(h, [-1, 108])[:, :7]),
        "tanh": tf.tanh(tf.reduce_sum(h, 3)),
    }
    return trained(out, feeds=feeds)
