"""Plants bugs of resuming into real trainings, and has `trainerd prove` find them: `make planted-trainers`.

Each script in resume/ has every kind of state, and resumes all of it. A bug is a small change to it, as people make it.
`trainerd prove` must call the script itself the same, and each change different, with its cause first.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ADAM, SCHEDULE, EMA, BEST = "optimizer state (moments)", "schedule of the learning rate", "EMA of the weights", "stale best"
RANDOM, ORDER, SHUFFLE, DROPOUT, SCALER, STEP = "random state", "data order", "shuffle seed", "dropout stream", "loss scaler", "step off by one"

# Script, which Python, checkpoints, steps, and for each bug its cause, what it replaces, and by what.
TRAININGS = {
    "torch": ("private", "ckpt-*.pt", 40, {
        "random": (RANDOM, '    noise.bit_generator.state = saved["noise_rng"]\n', ""),
        "order": (ORDER, "epoch, index = divmod(step, 8)", "epoch, index = divmod(step - (saved['step'] if CHECKPOINT else 0), 8)"),
        "seed": (SHUFFLE, "SEED = 7", "SEED = int(time.time())"),
        "schedule": (SCHEDULE, '    scheduler.load_state_dict(saved["scheduler"])\n', ""),
        "moments": (ADAM, '    optimizer.load_state_dict(saved["optimizer"])\n', ""),
        "ema": (EMA, '    ema.load_state_dict(saved["ema"])\n', ""),
        "step": (STEP, '    step = saved["step"]\n', '    step = saved["step"] + 1\n'),
        "best": (BEST, '    best_score = saved["best_score"]\n', ""),
        "scaler": (SCALER, '    scaler.load_state_dict(saved["scaler"])\n', ""),
        "dropout": (DROPOUT, '    torch.set_rng_state(saved["torch_rng"])\n', "", '"torch_rng": torch.get_rng_state(), ', ""),
    }),
    "lightning": ("private", "epoch*.ckpt", 48, {
        "random": (RANDOM, 'self.noise.bit_generator.state = checkpoint["noise_rng"]', "pass"),
        "order": (ORDER, "    def set_epoch(self, epoch):  # the trainer calls it\n        self.epoch = epoch\n", "",
                  "    def __iter__(self):\n", "    def __iter__(self):\n        self.epoch += 1\n"),
        "seed": (SHUFFLE, "SEED = 7", "SEED = int(time.time())"),
        "schedule": (SCHEDULE, 'return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}',
                     "self.scheduler = scheduler\n        return optimizer\n\n    def on_train_batch_end(self, *_):\n        self.scheduler.step()"),
        "moments": (ADAM, '        self.best = checkpoint["best"]\n', '        self.best = checkpoint["best"]\n        checkpoint["optimizer_states"] = []\n'),
        "ema": (EMA, '        self.ema = state["ema"]', "        pass"),
        "step": (ORDER, "max_epochs=EPOCHS,", "max_epochs=-1, max_steps=8 * EPOCHS,"),
        "best": (BEST, '        self.best = checkpoint["best"]\n', ""),
        "scaler": (SCALER, 'self.loss_scale, self.good_steps = checkpoint["loss_scaler"]["scale"], checkpoint["loss_scaler"]["good_steps"]', "pass"),
        "dropout": (DROPOUT, "callbacks=[saver, RandomState(), Averages()]", "callbacks=[saver, Averages()]"),
    }),
    "keras": ("own", "{ckpt-*.keras,state-*.json}", 12, {
        "random": (RANDOM, '    noise.bit_generator.state = state["noise_rng"]\n', ""),
        "order": (ORDER, "numpy.random.default_rng(SEED + epoch).permutation", "shuffler.permutation", "warmup, averages =", "shuffler = numpy.random.default_rng(SEED)\nwarmup, averages ="),
        "seed": (SHUFFLE, "SEED = 7", "SEED = int(time.time())"),
        "schedule": (SCHEDULE, '    warmup.n = state["warmup_steps"]\n', ""),
        "moments": (ADAM, "    model = keras.models.load_model(CHECKPOINT)\n",
                    "    model = keras.models.load_model(CHECKPOINT)\n"
                    '    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), initial_scale=4, dynamic_growth_steps=7), "mse")\n'),
        "ema": (EMA, '    averages.ema = [numpy.array(a, "float32") for a in state["ema"]]\n', ""),
        "step": (STEP, "range(first, EPOCHS)", "range(max(first - 1, 0), EPOCHS)"),
        "best": (BEST, '    best.best = state["best_val_loss"]\n', ""),
        "scaler": (SCALER, "    with open(os.path.join(LOGDIR, f\"state-", "    model.optimizer.dynamic_scale.assign(4)\n    with open(os.path.join(LOGDIR, f\"state-"),
        "dropout": (DROPOUT, '    model.layers[1].seed_generator.state.assign(state["dropout_rng"])\n', ""),
    }),
    "transformers": ("private", "checkpoint-*", 40, {
        "random": (RANDOM, "        if self.noise_rng:", "        if False:"),
        "order": (ORDER, "report_to=", "ignore_data_skip=True, report_to="),
        "seed": (SHUFFLE, "seed=3,", "seed=3, data_seed=int(time.time()),"),
        "ema": (EMA, 'return {"args": {}, "attributes": {"ema": self.ema}}', 'return {"args": {}, "attributes": {}}'),
        "moments": (SCHEDULE, "report_to=", "save_only_model=True, report_to="),  # which is lost, too, and reported
        "callbacks": (RANDOM, "    restore_callback_states_from_checkpoint=True,\n", ""),  # whose states are the noise, the averages and the patience
    }),
    "accelerate": ("private", "step_*", 40, {
        "order": (ORDER, "skip_first_batches(loader, done) if done else loader", "loader"),
        "step": (STEP, "skip_first_batches(loader, done) if done", "skip_first_batches(loader, done + 1) if done"),
        "seed": (SHUFFLE, "SEED = 7", "SEED = int(time.time())"),
        "schedule": (SCHEDULE, "net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)",
                     "net, optimizer, loader = accelerator.prepare(net, optimizer, loader)"),
        "ema": (EMA, "accelerator.register_for_checkpointing(progress, averages)", "accelerator.register_for_checkpointing(progress)"),
        "random": (RANDOM, '        self.noise.bit_generator.state = json.loads(state["noise_rng"])\n', ""),
        "best": (BEST, 'self.step, self.best_score = state["step"], state["best_score"]', 'self.step = state["step"]'),
    }),
}


def changed(text, bug):
    """The script with a bug in it."""
    for old, new in zip(bug[1::2], bug[2::2]):
        if text.count(old) != 1:
            sys.exit(f"{text.count(old)} times in the script: {old}")
        text = text.replace(old, new)
    return text


def prove(options, training, text, scratch):
    """The report of a script, None if there is none."""
    where, pattern, steps, _ = training
    scratch.mkdir(parents=True)
    script = scratch / "train.py"
    script.write_text(text)
    command = [options.trainerd, "prove", "--json", "--runs", str(options.runs), "--seed", str(options.seed), "--scratch", str(scratch / "runs")]
    for setting in (f"train.steps={steps}", f"child.checkpoints={pattern}"):
        command += ["--set", setting]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    python = options.own if where == "own" else options.python
    with open(scratch / "log", "w") as log:
        result = subprocess.run([*command, "--", python, str(script)], stdout=subprocess.PIPE, stderr=log, env=env, text=True)
    (scratch / "report.json").write_text(result.stdout)
    return json.loads(result.stdout) if result.stdout else None


def row(report):
    """What a report says, in a line."""
    if report is None:
        return "no report"
    parts = [report["verdict"]]
    parts += [f"resumed from {r['disturbance']['resumed']}" for r in report["runs"] if "disturbance" in r]
    parts.append(f"first step {report['first_step']}")
    if tensor := report.get("first_tensor"):
        parts.append(f"{tensor['name']} of {tensor['file']}")
    parts += [cause["name"] for cause in report.get("causes", [])]
    return "; ".join(parts + report.get("notes", []))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainerd", required=True)
    parser.add_argument("--python", required=True, help="of the environment with requirements.txt")
    parser.add_argument("--own", default=sys.executable, help="of the environment with TensorFlow and Keras")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a new folder for the logdirs")
    parser.add_argument("names", nargs="*", help="as lightning, or lightning:ema, or lightning:sound; default: all")
    options = parser.parse_args()
    scratch = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="planted-"))
    failed = 0
    for framework, training in TRAININGS.items():
        source = (HERE / "resume" / f"{framework}_all.py").read_text()
        for name, bug in {"sound": None, **training[-1]}.items():
            if options.names and framework not in options.names and f"{framework}:{name}" not in options.names:
                continue
            begun = time.time()
            report = prove(options, training, changed(source, bug) if bug else source, scratch / f"{framework}-{name}")
            cause = report["causes"][0]["name"] if report and report.get("causes") else ""
            fine = report is not None and (report["verdict"] == "same" if bug is None else report["verdict"] in ("differs", "nondeterministic") and cause == bug[0])
            failed += not fine
            print(f"{'ok  ' if fine else 'FAIL'} {framework}:{name} ({time.time() - begun:.0f} s): {row(report)}", flush=True)
    if not options.keep:
        shutil.rmtree(scratch)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
