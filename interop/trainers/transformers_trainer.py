"""Hugging Face's Trainer, which picks its newest checkpoint by itself."""

import os

import torch
from common import LOGDIR, STEPS, finish, pause
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

torch.set_num_threads(1)
torch.manual_seed(1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 1))

    def forward(self, x, labels):
        y = self.net(x)[:, 0]
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


class Slow(TrainerCallback):
    def on_step_end(self, *_, **__):
        pause()


inputs = torch.randn(640, 64, generator=torch.Generator().manual_seed(0))
data = [{"x": x, "labels": x.sum()} for x in inputs]
arguments = TrainingArguments(
    output_dir=LOGDIR, max_steps=STEPS, per_device_train_batch_size=16, save_steps=10, logging_steps=5, report_to="none", seed=3, use_cpu=True
)
model = Model()
trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=bool(os.path.isdir(LOGDIR) and get_last_checkpoint(LOGDIR)))
finish(p.detach().numpy() for p in model.parameters())
