"""Losses, regularisation and weighting."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def classifier():
    x = tf1.placeholder(tf.float32, [None, 7], "x")
    return tf1.nn.xw_plus_b(x, variable("w", [7, 4]), variable("b", [4]))


def feeds(n):
    r = rng(n)
    labels = r.randint(0, 4, 9)
    return {
        "x:0": r.uniform(-1, 1, [9, 7]).astype("f"),
        "label:0": labels,
        "onehot:0": (labels[:, None] == range(4)).astype("f"),
        "weight:0": r.randint(0, 3, 9).astype("f"),
    }


@program
def losses_collection():
    """Everything in tf.compat.v1.losses, with weights, through the losses collection."""
    logits = classifier()
    label = tf1.placeholder(tf.int64, [None], "label")
    onehot = tf1.placeholder(tf.float32, [None, 4], "onehot")
    weight = tf1.placeholder(tf.float32, [None], "weight")
    column = tf.expand_dims(weight, 1)
    l = tf1.losses
    probability = tf.nn.softmax(logits)
    out = {
        "softmax": l.softmax_cross_entropy(onehot, logits, weight, label_smoothing=0.1),
        "sparse": l.sparse_softmax_cross_entropy(label, logits, weight),
        "sigmoid": l.sigmoid_cross_entropy(onehot, logits, column, label_smoothing=0.2),
        "hinge": l.hinge_loss(onehot, logits, column),
        "huber": l.huber_loss(onehot, logits, column, delta=0.7),
        "mse": l.mean_squared_error(onehot, logits, column),
        "log": l.log_loss(onehot, probability, column),
        "absolute": l.absolute_difference(onehot, logits, column),
        "cosine": l.cosine_distance(tf.nn.l2_normalize(onehot, 1), tf.nn.l2_normalize(logits, 1), axis=1),
        "pairwise": l.mean_pairwise_squared_error(onehot, logits),
        "sum": l.mean_squared_error(onehot, logits, 0.5, reduction=l.Reduction.SUM),
        "mean": l.mean_squared_error(onehot, logits, column, reduction=l.Reduction.MEAN),
        "over_batch": l.mean_squared_error(onehot, logits, column, reduction=l.Reduction.SUM_OVER_BATCH_SIZE),
        "none": l.mean_squared_error(onehot, logits, column, None, None, l.Reduction.NONE),
    }
    return trained(out, l.get_total_loss(), feeds=feeds)


@program
def cross_entropies():
    """The cross entropies of tf.nn, direct and by hand."""
    logits = classifier()
    label = tf1.placeholder(tf.int64, [None], "label")
    onehot = tf1.placeholder(tf.float32, [None, 4], "onehot")
    weight = tf1.placeholder(tf.float32, [None], "weight")
    p = tf.clip_by_value(tf.nn.softmax(logits), 1e-10, 1.0)
    out = {
        "dense": tf1.nn.softmax_cross_entropy_with_logits_v2(labels=onehot, logits=logits),
        "dense_v1": tf1.nn.softmax_cross_entropy_with_logits(labels=onehot, logits=logits),
        "sparse": tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(label, tf.int32), logits=logits),
        "by_hand": -tf.reduce_sum(onehot * tf.math.log(p), axis=[1]),
        "log_softmax": tf.nn.log_softmax(logits),
        "sigmoid": tf.nn.sigmoid_cross_entropy_with_logits(labels=onehot, logits=logits),
        "weighted": tf1.nn.weighted_cross_entropy_with_logits(labels=onehot, logits=logits, pos_weight=2.5),
        "l2": tf.nn.l2_loss(logits),
    }
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), label), tf.float32))
    in_top = tf.nn.in_top_k(targets=tf.cast(label, tf.int32), predictions=logits, k=2)
    return trained({**out, "accuracy": accuracy, "in_top": in_top, "weight": weight}, feeds=feeds)


@program
def regularization():
    """Regularisers in their collection, moving averages of losses, and confusion-matrix style counts."""
    logits = classifier()
    onehot = tf1.placeholder(tf.float32, [None, 4], "onehot")
    label = tf1.placeholder(tf.int64, [None], "label")
    weight = tf1.placeholder(tf.float32, [None], "weight")
    w = tf1.trainable_variables()[0]
    tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES, 0.01 * tf.nn.l2_loss(w))
    extra = variable("extra", [4, 3], regularizer=lambda v: 0.1 * tf.reduce_sum(tf.abs(v)))
    tf1.losses.softmax_cross_entropy(onehot, logits)
    loss = tf1.losses.get_total_loss() + 0.1 * tf.norm(tf.matmul(logits, extra))
    confusion = tf.math.confusion_matrix(label, tf.argmax(logits, 1), num_classes=4)
    return trained({"total": loss, "confusion": confusion, "weight": weight}, loss, feeds=feeds)


@program
def metrics():
    """Metrics with their local variables."""
    logits = classifier()
    label = tf1.placeholder(tf.int64, [None], "label")
    onehot = tf1.placeholder(tf.float32, [None, 4], "onehot")
    weight = tf1.placeholder(tf.float32, [None], "weight")
    guess = tf.argmax(logits, 1)
    m = tf1.metrics
    made = {
        "accuracy": m.accuracy(label, guess, weight),
        "mean": m.mean(logits),
        "auc": m.auc(onehot, tf.sigmoid(logits), num_thresholds=20),
        "precision": m.precision(label > 1, guess > 1),
        "recall": m.recall(label > 1, guess > 1),
        "mse": m.mean_squared_error(onehot, logits),
        "rmse": m.root_mean_squared_error(onehot, logits),
        "mae": m.mean_absolute_error(onehot, logits),
        "iou": m.mean_iou(label, guess, 4),
        "tp": m.true_positives(label > 1, guess > 1),
        "fn": m.false_negatives(label > 1, guess > 1),
        "per_class": m.mean_per_class_accuracy(label, guess, 4),
        "below": m.percentage_below(logits, 0.1),
    }
    return Built(tf.group(*[u for _, u in made.values()]), {k: u for k, (_, u) in made.items()}, feeds)
