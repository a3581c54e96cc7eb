"""XGBoost, which saves its model every ten rounds and continues from it."""

import numpy as np
import xgboost
from common import CHECKPOINT, STEPS, finish, path, pause

x = np.random.default_rng(0).normal(size=(400, 8)).astype("float32")
data = xgboost.DMatrix(x, label=x.sum(1))


class Save(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        rounds = model.num_boosted_rounds()
        print(f"[{rounds}]\ttrain-rmse:{evals_log['train']['rmse'][-1]:.6f}", flush=True)
        if rounds % 10 == 0:
            model.save_model(path(f"model-{rounds}.json"))
        pause()
        return False


before = xgboost.Booster(model_file=CHECKPOINT) if CHECKPOINT else None
done = before.num_boosted_rounds() if before else 0
model = xgboost.train(
    {"max_depth": 3, "eta": 0.1, "nthread": 1, "seed": 1}, data, num_boost_round=STEPS - done, xgb_model=before, evals=[(data, "train")],
    callbacks=[Save()], verbose_eval=False,
)
finish([model.predict(data)])
