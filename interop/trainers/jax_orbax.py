"""JAX with optax; orbax saves, and picks the newest step by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from common import LOGDIR, STEPS, finish, pause

manager = ocp.CheckpointManager(LOGDIR + "/checkpoints", options=ocp.CheckpointManagerOptions(save_interval_steps=10))
optimizer = optax.adam(1e-3)
params = {"a": jax.random.normal(jax.random.key(0), (64, 256)) * 0.1, "b": jax.random.normal(jax.random.key(1), (256,)) * 0.1}
state = {"params": params, "opt": optimizer.init(params)}
step = manager.latest_step() or 0
if step:
    state = manager.restore(step, args=ocp.args.StandardRestore(state))


@jax.jit
def train(state, step):
    x = jax.random.normal(jax.random.fold_in(jax.random.key(2), step), (32, 64))
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] - x.sum(1)) ** 2))(state["params"])
    updates, opt = optimizer.update(grads, state["opt"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, loss


while step < STEPS:
    step += 1
    state, loss = train(state, step)
    print(f"step {step}, loss: {float(loss):.6f}", flush=True)
    pause()
    manager.save(step, args=ocp.args.StandardSave(state))
manager.wait_until_finished()
manager.close()
finish(np.asarray(leaf) for leaf in jax.tree.leaves(state["params"]))
