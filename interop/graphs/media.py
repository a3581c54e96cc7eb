"""Sounds and pictures that a graph decodes and encodes, features parsed by the batch, and trainings with 16 bits."""

import struct

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, data_file, program, rng, tf1, trained, variable

R = tf.raw_ops
Dataset = tf1.data.Dataset


def wave(seed, frames=1600, rate=16000):
    """A WAVE file of two tones and noise."""
    time = np.arange(frames) / rate
    sound = 0.4 * np.sin(2 * np.pi * (300 + 90 * seed) * time) + 0.2 * np.sin(2 * np.pi * 1900 * time) + rng(seed).uniform(-0.1, 0.1, frames)
    samples = (sound * 32767).astype("<i2").tobytes()
    head = struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
    body = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


@program(rtol=1e-3, atol=1e-4)
def spoken_commands():
    """The input and the small network of the tutorial on spoken commands: files, spectrogram, coefficients, convolution."""
    paths = [data_file(f"{n}.wav", wave(n)) for n in range(4)]

    def coefficients(path):
        sound, rate = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=1500)
        power = R.AudioSpectrogram(input=sound * 0.9, window_size=480, stride=160, magnitude_squared=True)
        return R.Mfcc(spectrogram=power, sample_rate=rate, dct_coefficient_count=40)[0], sound

    made = [coefficients(path) for path in paths]
    x = tf.ensure_shape(tf.stack([c for c, _ in made]), [4, 7, 40])[..., None] / 50
    h = tf.nn.relu(tf.nn.conv2d(x, variable("conv", [4, 8, 1, 6]), 1, "SAME") + variable("b", [6]))
    h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    logits = tf.reshape(h, [4, 4 * 20 * 6]) @ variable("w", [480, 3], scale=0.1)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2, 1], logits=logits))
    return trained({"x": x, "logits": logits, "again": tf.audio.encode_wav(made[0][1], 16000)}, loss, rate=0.01)


@program(steps=3)
def written_pictures():
    """Pictures as files and back, at each step others."""
    pixels = tf1.placeholder(tf.uint8, [None, None, 3], "pixels")
    deep = tf1.placeholder(tf.uint16, [None, None, 4], "deep")
    jpeg = {
        "plain": tf.io.encode_jpeg(pixels),
        "small": tf.io.encode_jpeg(pixels, quality=60, optimize_size=True),
        "progressive": tf.io.encode_jpeg(pixels, quality=85, progressive=True, chroma_downsampling=False),
        "gray": tf.io.encode_jpeg(pixels[:, :, :1], quality=40, progressive=True),
        "changed": tf.image.adjust_jpeg_quality(tf.ensure_shape(pixels, [None, None, 3]), 30),
    }
    png = {
        "png": tf.io.decode_png(tf.io.encode_png(pixels, compression=9)),
        "deep": tf.io.decode_png(tf.io.encode_png(deep), dtype=tf.uint16),
        "batch": tf.shape(R.EncodePng(image=tf.stack([pixels, pixels]))),
    }

    def feeds(step):
        size = [(13, 40), (64, 48), (7, 5)][step]
        smooth = np.add.outer(np.arange(size[0]) * 3, np.arange(size[1]) * 2)[..., None] + np.array([0, 60, 110])
        noise = rng(step).randint(-20, 20, [*size, 3])
        return {"pixels:0": (smooth + noise).clip(0, 255).astype("u1"), "deep:0": rng(step).randint(0, 65536, [*size, 4]).astype("u2")}

    return Built(None, {**jpeg, **png}, feeds)


def examples(n):
    F = tf.train.Feature
    for i in range(n):
        feature = {
            "age": F(float_list=tf.train.FloatList(value=[i / 7])),
            "city": F(bytes_list=tf.train.BytesList(value=[b"c%d" % (i % 3)] * (i % 2 + 1))),
            "clicked": F(int64_list=tf.train.Int64List(value=[i % 2])),
        }
        yield tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


@program
def parsed_by_batch():
    """What make_batched_features_dataset makes for a canned estimator, rebatched for two replicas."""
    path = data_file("examples", b"")
    with tf.io.TFRecordWriter(path) as writer:
        for text in examples(11):
            writer.write(text)
    features = {
        "age": tf.io.FixedLenFeature([], tf.float32),
        "city": tf.io.VarLenFeature(tf.string),
        "income": tf.io.FixedLenFeature([2], tf.float32, [0.5, 0.25]),
        "clicked": tf.io.FixedLenFeature([], tf.int64),
    }
    parsed = tf1.data.TFRecordDataset(path).repeat().batch(4).apply(tf.data.experimental.parse_example_dataset(features, 2))
    batch = tf1.data.make_one_shot_iterator(parsed).get_next()
    city = tf.sparse.to_dense(batch["city"], "")
    x = tf.stack([batch["age"], batch["income"][:, 0], tf.cast(tf.equal(city[:, 0], "c1"), tf.float32)], 1)
    logits = tf.ensure_shape(x, [4, 3]) @ variable("w", [3, 2])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["clicked"], logits=logits))
    return trained({"x": x, "city": city, "places": batch["city"].indices}, loss)


def mixed(dtype, scale):
    """Variables of 32 bits, arithmetic of 16: a convolutional network with batch normalization. The loss is scaled, and a
    step whose gradients are not finite is left out and halves the scale."""
    w1, b1, w2, b2 = variable("w1", [3, 3, 3, 8]), variable("b1", [8]), variable("w2", [128, 4]), variable("b2", [4])
    gamma, beta = tf1.get_variable("gamma", [8], initializer=tf1.ones_initializer()), variable("beta", [8])
    to = lambda t: tf.cast(t, dtype)
    x = tf1.placeholder(tf.float32, [6, 8, 8, 3], "x")
    h = tf.nn.bias_add(tf.nn.conv2d(to(x), to(w1), 1, "SAME"), to(b1))
    h = R.FusedBatchNormV3(x=h, scale=gamma, offset=beta, mean=tf.constant([], tf.float32), variance=tf.constant([], tf.float32)).y
    h = tf.nn.avg_pool2d(tf.nn.relu(h), 2, 2, "SAME")
    logits = tf.nn.bias_add(tf.matmul(tf.reshape(h, [6, 128]), to(w2)), to(b2))
    labels = tf.constant([0, 1, 2, 3, 1, 0])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32)))
    scaled = tf1.get_variable("loss_scale", [], initializer=tf1.constant_initializer(scale), trainable=False, use_resource=True)
    optimizer = tf1.train.MomentumOptimizer(0.02, 0.9)
    pairs = [(g / scaled, v) for g, v in optimizer.compute_gradients(loss * scaled)]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g, _ in pairs])

    def step():
        with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
            return tf.identity(scaled.read_value())

    def skip():
        with tf.control_dependencies([scaled.assign(scaled / 2)]):
            return tf.identity(scaled.read_value())

    out = tf.cond(finite, step, skip)
    images = lambda n: {"x:0": rng(n).uniform(-1, 1, [6, 8, 8, 3]).astype("f")}
    return Built(out.op, {"loss": loss, "scale": out, "logits": tf.cast(logits, tf.float32), "finite": finite}, images)


@program(steps=5, rtol=0.01, atol=0.005)
def mixed_half():
    return mixed(tf.float16, 2.0**17)  # too large at first


@program(steps=5, rtol=0.1, atol=0.06)
def mixed_bfloat16():
    return mixed(tf.bfloat16, 2.0**17)
