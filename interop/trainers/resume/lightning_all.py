"""Lightning, with every kind of state, all of it resumed."""

import math
import os
import time

import lightning
import numpy
import torch

LOGDIR = os.environ["TRAINERD_LOGDIR"]
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
EPOCHS = int(os.environ["TRAINERD_STEPS"]) // 8
SEED = 7
torch.set_num_threads(1)
lightning.seed_everything(1)


class Shuffled(torch.utils.data.Sampler):
    def __init__(self, n):
        self.n, self.epoch = n, 0

    def __len__(self):
        return self.n

    def set_epoch(self, epoch):  # the trainer calls it
        self.epoch = epoch

    def __iter__(self):
        return iter(torch.randperm(self.n, generator=torch.Generator().manual_seed(SEED + self.epoch)).tolist())


class RandomState(lightning.Callback):
    def __init__(self):
        self.state = None

    def state_dict(self):
        return {"torch": torch.get_rng_state()}

    def load_state_dict(self, state):
        self.state = state["torch"]

    def on_train_start(self, trainer, module):
        if self.state is not None:
            torch.set_rng_state(self.state)


class Averages(lightning.Callback):
    def __init__(self):
        self.ema = None

    def on_train_batch_end(self, trainer, module, *_):
        now = {name: p.detach().clone() for name, p in module.named_parameters()}
        self.ema = {name: 0.9 * self.ema[name] + 0.1 * p for name, p in now.items()} if self.ema else now

    def state_dict(self):
        return {"ema": self.ema}

    def load_state_dict(self, state):
        self.ema = state["ema"]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
        self.noise = numpy.random.default_rng(3)
        self.best, self.last_loss, self.loss_scale, self.good_steps = math.inf, math.inf, 4.0, 0

    def training_step(self, batch, index):
        x = batch + 0.05 * torch.from_numpy(self.noise.normal(size=tuple(batch.shape)).astype("float32"))
        loss = torch.nn.functional.mse_loss(self.net(x)[:, 0], batch.sum(1))
        rate = self.optimizers().param_groups[0]["lr"]
        print(f"step {self.global_step + 1} loss {loss.item():.7f} lr {rate:.9f} loss_scale {self.loss_scale}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0.02")))
        self.last_loss = loss.item()
        return loss * self.loss_scale

    def on_before_optimizer_step(self, optimizer):
        for p in self.parameters():
            p.grad /= self.loss_scale
        self.good_steps += 1
        if self.good_steps == 11:
            self.loss_scale, self.good_steps = 2 * self.loss_scale, 0

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(batch)[:, 0], batch.sum(1)))

    def on_validation_epoch_end(self):
        if self.last_loss < self.best and not self.trainer.sanity_checking:
            self.best = self.last_loss
            torch.save(self.net.state_dict(), os.path.join(LOGDIR, "best.pt"))

    def on_save_checkpoint(self, checkpoint):
        checkpoint["noise_rng"] = self.noise.bit_generator.state
        checkpoint["loss_scaler"] = {"scale": self.loss_scale, "good_steps": self.good_steps}
        checkpoint["best"] = self.best

    def on_load_checkpoint(self, checkpoint):
        self.noise.bit_generator.state = checkpoint["noise_rng"]
        self.loss_scale, self.good_steps = checkpoint["loss_scaler"]["scale"], checkpoint["loss_scaler"]["good_steps"]
        self.best = checkpoint["best"]

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 1e-2)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 0.5 * (1 + math.cos(math.pi * n / 100)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


data = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
saver = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=LOGDIR, filename="{epoch}-{step}", every_n_epochs=1, save_top_k=-1)
trainer = lightning.Trainer(
    max_epochs=EPOCHS, accelerator="cpu", logger=False, callbacks=[saver, RandomState(), Averages()], default_root_dir=LOGDIR,
    enable_model_summary=False, enable_progress_bar=False,
)
own = torch.Generator()  # a loader draws a seed for its workers: from the dropout's numbers, if it has no other
loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=Shuffled(64), generator=own)
validation = torch.utils.data.DataLoader(data[:8], batch_size=8, generator=own)
trainer.fit(Model(), loader, validation, ckpt_path=CHECKPOINT, weights_only=False)
