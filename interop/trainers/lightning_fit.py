"""PyTorch Lightning with its own checkpoints, at the end of each epoch."""

import lightning
import torch
from common import CHECKPOINT, LOGDIR, STEPS, finish, pause

torch.set_num_threads(1)
lightning.seed_everything(1)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.net(batch)[:, 0], batch.sum(1))
        self.log("train_loss", loss, prog_bar=True)
        pause()
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


data = torch.randn(160, 64, generator=torch.Generator().manual_seed(0))
model = Model()
saver = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=LOGDIR, filename="{epoch}-{step}", every_n_epochs=1, save_top_k=-1)
bar = lightning.pytorch.callbacks.TQDMProgressBar()
trainer = lightning.Trainer(
    max_epochs=STEPS // 10, accelerator="cpu", logger=False, callbacks=[saver, bar], default_root_dir=LOGDIR, enable_model_summary=False
)
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=16), ckpt_path=CHECKPOINT)
finish(p.detach().numpy() for p in model.parameters())
