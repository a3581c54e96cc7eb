"""Keras 3's model.fit, with every kind of state, all of it resumed."""

import json
import math
import os
import re
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy

LOGDIR = os.environ["TRAINERD_LOGDIR"]
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
EPOCHS = int(os.environ["TRAINERD_STEPS"])
SEED = 7
keras.utils.set_random_seed(1)
first = int(re.search(r"(\d+)\.keras$", CHECKPOINT).group(1)) if CHECKPOINT else 0
noise = numpy.random.default_rng(3)


class Warmup(keras.callbacks.Callback):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def on_epoch_begin(self, epoch, logs=None):
        self.n += 1
        self.model.optimizer.inner_optimizer.learning_rate = 1e-2 * min(self.n / 10, 1)


class Averages(keras.callbacks.Callback):
    ema = None

    def on_train_batch_end(self, batch, logs=None):
        now = self.model.get_weights()
        self.ema = [0.9 * a + 0.1 * b for a, b in zip(self.ema, now)] if self.ema else now


class State(keras.callbacks.Callback):
    """What a model does not save."""

    def on_epoch_end(self, epoch, logs=None):
        name = os.path.join(LOGDIR, f"state-{epoch + 1:03d}.json")
        state = {
            "noise_rng": noise.bit_generator.state, "dropout_rng": self.model.layers[1].seed_generator.state.numpy().tolist(),
            "warmup_steps": warmup.n, "best_val_loss": best.best, "ema": [a.tolist() for a in averages.ema],
        }
        with open(name + ".tmp", "w") as file:
            json.dump(state, file)
        os.replace(name + ".tmp", name)
        time.sleep(float(os.environ.get("PAUSE", "0.05")))


def build():
    return keras.Sequential([
        keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.2, seed=5), keras.layers.Dense(1),
    ])


x = numpy.random.default_rng(0).normal(size=(64, 16)).astype("float32")
y = x.sum(1)
warmup, averages = Warmup(0), Averages()
best = keras.callbacks.ModelCheckpoint(os.path.join(LOGDIR, "best.keras"), monitor="val_loss", mode="max", save_best_only=True)  # so that the best comes early
if CHECKPOINT:
    model = keras.models.load_model(CHECKPOINT)
    with open(os.path.join(LOGDIR, f"state-{first:03d}.json")) as file:
        state = json.load(file)
    noise.bit_generator.state = state["noise_rng"]
    model.layers[1].seed_generator.state.assign(state["dropout_rng"])
    warmup.n = state["warmup_steps"]
    best.best = state["best_val_loss"]
    averages.ema = [numpy.array(a, "float32") for a in state["ema"]]
else:
    model = build()
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), initial_scale=4, dynamic_growth_steps=7), "mse")
saver = keras.callbacks.ModelCheckpoint(os.path.join(LOGDIR, "ckpt-{epoch:03d}.keras"))
for epoch in range(first, EPOCHS):
    order = numpy.random.default_rng(SEED + epoch).permutation(len(x))
    noisy = x[order] + 0.05 * noise.normal(size=x.shape).astype("float32")
    model.fit(
        noisy, y[order], batch_size=16, epochs=epoch + 1, initial_epoch=epoch, shuffle=False, validation_data=(x[:16], y[:16]), verbose=2,
        callbacks=[warmup, averages, best, State(), saver],
    )
