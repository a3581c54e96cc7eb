"""Hugging Face's Trainer, with every kind of state that it can have, all of it resumed."""

import os
import time

import numpy
import torch
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState

LOGDIR = os.environ["TRAINERD_LOGDIR"]
CHECKPOINT = os.environ.get("TRAINERD_CHECKPOINT")
STEPS = int(os.environ["TRAINERD_STEPS"])
torch.set_num_threads(1)
torch.manual_seed(1)


noise = numpy.random.default_rng(3)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))

    def forward(self, x, labels):
        if self.training:
            x = x + 0.05 * torch.from_numpy(noise.normal(size=tuple(x.shape)).astype("float32"))
        y = self.net(x)[:, 0]
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


class Averages(TrainerCallback, ExportableState):
    def __init__(self, ema=None):
        self.ema = ema

    def on_step_end(self, args, state, control, model=None, **_):
        now = {name: p.detach().tolist() for name, p in model.named_parameters()}
        self.ema = {name: mix(self.ema[name], p) for name, p in now.items()} if self.ema else now
        time.sleep(float(os.environ.get("PAUSE", "0.02")))

    def state(self):
        return {"args": {}, "attributes": {"ema": self.ema}}


def mix(a, b):
    return [mix(x, y) for x, y in zip(a, b)] if isinstance(a, list) else 0.9 * a + 0.1 * b


class Noise(TrainerCallback, ExportableState):
    """Keeps the state of the noise."""

    def __init__(self, noise_rng=None):
        self.noise_rng = noise_rng

    def on_train_begin(self, *_, **__):
        if self.noise_rng:
            noise.bit_generator.state = self.noise_rng

    def on_step_end(self, *_, **__):
        self.noise_rng = noise.bit_generator.state

    def state(self):
        return {"args": {}, "attributes": {"noise_rng": self.noise_rng}}


inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
data = [{"x": x, "labels": x.sum()} for x in inputs]
arguments = TrainingArguments(
    output_dir=LOGDIR, max_steps=STEPS, per_device_train_batch_size=8, save_steps=5, logging_steps=1, report_to="none", seed=3, use_cpu=True,
    learning_rate=1e-2, lr_scheduler_type="cosine", eval_strategy="steps", eval_steps=5, load_best_model_at_end=True, disable_tqdm=True,
    restore_callback_states_from_checkpoint=True,
)
trainer = Trainer(
    model=Model(), args=arguments, train_dataset=data, eval_dataset=data[:8],
    callbacks=[Averages(), Noise(), EarlyStoppingCallback(early_stopping_patience=100)],
)
trainer.train(resume_from_checkpoint=CHECKPOINT)
averages = next(callback for callback in trainer.callback_handler.callbacks if isinstance(callback, Averages))
torch.save({name: torch.tensor(p) for name, p in averages.ema.items()}, os.path.join(LOGDIR, "ema.pt"))
