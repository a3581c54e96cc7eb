"""Lightning with its own checkpoints, the two newest of them."""

import time

from race import EVERY, LOGDIR, STEPS, checkpoints, done, finish

import lightning
import torch
from torch_model import loss_of, make_model, make_optimizer, weights


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = make_model()

    def training_step(self, batch, index):
        return loss_of(self.net, self.global_step + 1)

    def configure_optimizers(self):
        return make_optimizer(self.net)


class Journal(lightning.Callback):
    def on_train_batch_start(self, trainer, *rest):
        self.begin = time.time()

    def on_train_batch_end(self, trainer, *rest):
        done(trainer.global_step, self.begin)


saver = lightning.pytorch.callbacks.ModelCheckpoint(
    dirpath=LOGDIR, filename="{step}", monitor="step", mode="max", save_top_k=2, every_n_train_steps=EVERY
)
trainer = lightning.Trainer(
    max_epochs=1, max_steps=STEPS, accelerator="cpu", logger=False, callbacks=[Journal(), saver], enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=LOGDIR,
)  # fmt: skip
model = Model()
batches = torch.utils.data.DataLoader(torch.zeros(STEPS, 1))  # the loss makes its own by the step
newest = next(reversed(checkpoints(r"step=(\d+)\.ckpt")), None)
trainer.fit(model, batches, ckpt_path=newest)
finish(weights(model.net))
