"""LightGBM, which saves its model every ten rounds and continues from it."""

import lightgbm
import numpy as np
from common import CHECKPOINT, STEPS, finish, path, pause

x = np.random.default_rng(0).normal(size=(400, 8)).astype("float32")
data = lightgbm.Dataset(x, label=x.sum(1), free_raw_data=False)


def save(env):
    rounds = env.iteration + 1
    print(f"[{rounds}]\ttraining's l2: {env.evaluation_result_list[0][2]:.6f}", flush=True)
    if rounds % 10 == 0:
        env.model.save_model(path(f"model-{rounds}.txt"))
    pause()


before = lightgbm.Booster(model_file=CHECKPOINT) if CHECKPOINT else None
done = before.current_iteration() if before else 0
model = before
if done < STEPS:  # else it was killed after its last save, and LightGBM does not train for no rounds
    model = lightgbm.train(
        {"objective": "regression", "num_leaves": 8, "num_threads": 1, "seed": 1, "deterministic": True, "force_row_wise": True, "metric": "l2", "verbosity": -1},
        data, num_boost_round=STEPS - done, init_model=before, valid_sets=[data], valid_names=["training"], callbacks=[save],
    )
finish([model.predict(x)])
