"""Keras 3: model.fit with a checkpoint after each epoch."""

import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
from common import CHECKPOINT, STEPS, finish, path, pause

keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(160, 64)).astype("float32")
y = x.sum(1)
first = 0
if CHECKPOINT:
    model = keras.models.load_model(CHECKPOINT)
    first = int(re.search(r"(\d+)\.keras$", CHECKPOINT).group(1))
else:
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
model.fit(
    x, y, batch_size=32, epochs=STEPS, initial_epoch=first, shuffle=False,
    callbacks=[
        keras.callbacks.ModelCheckpoint(path("ckpt-{epoch:03d}.keras")),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: pause()),
    ],
)
finish(model.get_weights())
