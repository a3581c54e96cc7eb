"""Programs that compute with complex numbers, and with text and rows of different lengths: operators on fields, state spaces,
lines of comma-separated values, words and characters."""

import numpy as np
import tensorflow as tf

from graphs.flow import as_functions
from graphs.networks import dense, kept, minimized
from graphs.recorder import Built, data_file, program, rng, tf1


def adam(loss, also=()):
    return minimized(loss, tf1.train.AdamOptimizer(0.01, epsilon=1e-3), also)


@program
def fourier_operator():
    """A Fourier neural operator: the low frequencies of each channel are mixed by complex weights."""
    x, y = tf1.placeholder(tf.float32, [2, 8, 8, 1], "x"), tf1.placeholder(tf.float32, [2, 8, 8, 1], "y")
    h = dense(x, 4, "lift")
    for i in range(2):
        spectrum = tf.signal.rfft2d(tf.transpose(h, [0, 3, 1, 2]))
        weights = [tf.complex(kept(f"re{i}{k}", [4, 4, 3, 3]), kept(f"im{i}{k}", [4, 4, 3, 3])) for k in "lh"]
        low = tf.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], weights[0])
        high = tf.einsum("bixy,ioxy->boxy", spectrum[:, :, -3:, :3], weights[1])
        mixed = tf.pad(tf.concat([low, tf.zeros([2, 4, 2, 3], tf.complex64), high], 2), [[0, 0], [0, 0], [0, 0], [0, 2]])
        h = tf.nn.gelu(tf.transpose(tf.signal.irfft2d(mixed, [8, 8]), [0, 2, 3, 1]) + dense(h, 4, f"skip{i}"))
    loss = tf.reduce_mean((dense(h, 1, "out") - y) ** 2)
    feed = lambda n: {"x:0": rng(n).normal(size=[2, 8, 8, 1]).astype("f"), "y:0": rng(n + 9).normal(size=[2, 8, 8, 1]).astype("f")}
    return Built(adam(loss), {"loss": loss, "spectrum": spectrum}, feed)


@program
def state_space():
    """A diagonal state space: its kernel by complex exponentials, and as a product of matrices; running sums and means."""
    u, y = tf1.placeholder(tf.float32, [3, 12, 4], "u"), tf1.placeholder(tf.int32, [3], "y")
    poles = tf.complex(-tf.exp(kept("decay", [4, 5])), 3 * kept("turn", [4, 5]))
    weights = tf.complex(kept("re", [4, 5]), kept("im", [4, 5]))
    steps = poles * tf.cast(tf.exp(kept("step", [4]) - 2)[:, None], tf.complex64)
    powers = tf.exp(steps[..., None] * tf.cast(tf.range(12), tf.complex64))
    kernel = 2 * tf.math.real(tf.einsum("hn,hnl->hl", weights * tf.math.expm1(steps) / poles, powers))
    spectrum = tf.signal.rfft(tf.pad(tf.transpose(u, [0, 2, 1]), [[0, 0], [0, 0], [0, 12]])) * tf.signal.rfft(tf.pad(kernel, [[0, 0], [0, 12]]))
    h = tf.nn.gelu(tf.transpose(tf.signal.irfft(spectrum)[..., :12], [0, 2, 1]) + u * kept("through", [4]))
    gram = tf.matmul(powers, powers, adjoint_b=True) / 12
    rotated = tf.math.log(tf.sqrt(gram + 2) + tf.tanh(gram)) * tf.cast(kept("scale", [5]), tf.complex64)
    extra = tf.reduce_mean(tf.abs(tf.reduce_mean(tf.cumsum(rotated, 1), 2)) ** 2)
    logits = dense(tf.reduce_mean(h, 1), 3, "out")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)) + 0.1 * extra
    feed = lambda n: {"u:0": rng(n).normal(size=[3, 12, 4]).astype("f"), "y:0": rng(n).randint(0, 3, 3).astype("i")}
    return Built(adam(loss), {"loss": loss, "kernel": kernel, "gram": gram}, feed)


def table(rows):
    """Lines with missing fields, quotes, and a line break in a field."""
    r = rng(3)
    lines = ["age,fare,name,class,survived"]
    for i in range(rows):
        name = '"Doe, ""J""\n%d"' % i if i % 3 else "Roe"
        lines.append("%s,%.2f,%s,%s,%d" % ("" if i % 7 == 0 else r.randint(1, 80), r.uniform(5, 90), name, r.choice(["1st", "2nd", "3rd"]), r.randint(2)))
    return ("\n".join(lines) + "\n").encode()


@program
def comma_separated():
    """make_csv_dataset, shuffled, into the features of a small network."""
    path = data_file("passengers.csv", table(60))
    rows = tf.data.experimental.make_csv_dataset(path, 8, label_name="survived", shuffle_buffer_size=20, shuffle_seed=5, num_epochs=None)
    features, label = tf1.data.make_one_shot_iterator(rows).get_next()
    words = [tf.one_hot(tf.strings.to_hash_bucket_fast(features[k], n), n) for k, n in (("class", 4), ("name", 6))]
    numbers = [tf.cast(features[k], tf.float32)[:, None] / 80 for k in ("age", "fare")]
    x = tf.ensure_shape(tf.concat(numbers + words, 1), [8, 12])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(label, tf.float32), logits=dense(x, 1, "out")[:, 0]))
    return Built(adam(loss), {"loss": loss, "names": features["name"], "ages": features["age"]})


LINES = ["the quick brown fox", "Übermäßig größer", "Привет мир", "日本語 テキスト", "naïve café", "emoji 😀 ok", "a b c d e f"]


def ragged_words():
    """Lines as rows of words and of characters, mapped row by row, joined, and written in other encodings."""
    lines = tf1.placeholder(tf.string, [4], "lines")
    characters, words = tf.strings.unicode_decode(lines, "UTF-8"), tf.strings.split(tf.strings.lower(lines))
    means = [
        tf.reduce_mean(t.with_values(tf.nn.embedding_lookup(kept(name, [40, 4]), ids)), 1)
        for name, t, ids in (("words", words, tf.strings.to_hash_bucket_fast(words.values, 40)), ("characters", characters, characters.values % 40))
    ]
    lengths = tf.map_fn(lambda row: tf.reduce_sum(tf.strings.length(row)), words, fn_output_signature=tf.int32)
    doubled = tf.map_fn(lambda row: tf.concat([row, row], 0), characters, fn_output_signature=tf.RaggedTensorSpec([None], tf.int32))
    shown = {
        "joined": tf.strings.reduce_join(words, axis=-1, separator="_"),
        "next": tf.strings.unicode_encode(characters.with_values(characters.values + 1), "UTF-8"),
        "doubled": tf.strings.unicode_encode(doubled, "UTF-16-BE"),
        "scripts": tf.strings.unicode_script(characters.values),
        "wide": tf.strings.unicode_transcode(lines, "UTF-8", "UTF-32-BE"),
        "lengths": lengths,
    }
    h = tf.reshape(tf.concat(means, 1), [4, 8])
    loss = tf.reduce_mean((dense(h, 1, "out") - tf.cast(lengths, tf.float32)[:, None] / 20) ** 2)
    feed = lambda n: {"lines:0": np.array([LINES[k].encode() for k in rng(n).randint(0, len(LINES), 4)], object)}
    return Built(adam(loss, shown.values()), {"loss": loss, **shown}, feed)


program(ragged_words, name="ragged_words_v1")
program(as_functions(ragged_words), name="ragged_words_v2")
