"""Trainings that resume exactly, each in a form of its own: KIND says which."""

import json
import os
import random
import signal
import struct
import time

KIND = os.environ.get("KIND", "")
logdir = os.environ["TRAINERD_LOGDIR"]
steps = int(os.environ.get("TRAINERD_STEPS", "100"))
EPOCH = 10
state = {"step": 0, "w": [0.0, 0.0, 0.0], "m": [0.0, 0.0, 0.0]}
losses = []  # since the last report


def path_of(step):
    names = {
        "last index": f"ckpt-{step - 1}.json", "epochs": f"epoch-{step // EPOCH}.json", "one file": "ckpt.json",
        "safetensors": f"model-{step}.safetensors", "folders": f"checkpoint-{step}",
    }
    return os.path.join(logdir, names.get(KIND, f"ckpt-{step}.json"))


def dump(name, text):
    with open(name + ".tmp", "wb") as file:
        file.write(text)
    os.replace(name + ".tmp", name)


def tensors(values):
    names = sorted(values)
    body = b"".join(struct.pack(f"<{len(values[n])}d", *values[n]) for n in names)
    at, head = 0, {"__metadata__": {"step": str(state["step"])}}
    for n in names:
        size = 8 * len(values[n])
        head[n] = {"dtype": "F64", "shape": [len(values[n])], "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(head).encode()
    return struct.pack("<Q", len(head)) + head + body


def save():
    name = path_of(state["step"])
    if KIND == "folders":
        os.makedirs(name + ".tmp", exist_ok=True)
        for part in ("w", "m"):
            dump(os.path.join(name + ".tmp", part + ".json"), json.dumps({"step": state["step"], part: state[part]}).encode())
        if not os.path.exists(name):
            os.replace(name + ".tmp", name)
    elif KIND == "safetensors":
        dump(name, tensors({"w": state["w"], "m": state["m"], "step": [state["step"]]}))
    else:
        saved = dict(state, saved_at=time.time()) if KIND == "clock" else state
        dump(name, json.dumps(saved).encode())


given = os.environ.get("TRAINERD_CHECKPOINT")
if given and KIND == "folders":
    for part in ("w", "m"):
        with open(os.path.join(given, part + ".json")) as file:
            state.update(json.load(file))
elif given and KIND == "safetensors":
    with open(given, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        body = file.read()
    for n in ("w", "m"):
        a, b = head[n]["data_offsets"]
        state[n] = list(struct.unpack(f"<{(b - a) // 8}d", body[a:b]))
    state["step"] = int(head["__metadata__"]["step"])
elif given:
    with open(given) as file:
        state = json.load(file)

stopping = []
if KIND != "no handler":
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
while state["step"] < steps and not stopping:
    step, r = state["step"], random.Random(state["step"])
    x = [r.uniform(-1, 1) for _ in state["w"]]
    error = sum(w * a for w, a in zip(state["w"], x)) - (x[0] - 2 * x[1])
    if KIND == "by chance":
        error += 1e-9 * (os.urandom(1)[0] - 128)
    state["m"] = [0.9 * m + error * a for m, a in zip(state["m"], x)]
    state["w"] = [w - 0.05 * m for w, m in zip(state["w"], state["m"])]
    state["step"] = step + 1
    shown = step if KIND in ("from 0", "last index") else step + 1
    if KIND == "epochs":
        if shown % EPOCH == 0:
            print(f"Epoch {shown // EPOCH}: loss {error * error}", flush=True)
    elif KIND in ("every tenth", "means"):
        losses.append(error * error)
        if shown % 10 == 0:
            print(f"step={shown} loss={sum(losses) / len(losses) if KIND == 'means' else losses[-1]!r}", flush=True)
            losses.clear()
    elif KIND != "silent":
        print(f"step={shown} loss={error * error!r} step_time={time.time() % 1}", flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0.004")))
    if state["step"] % (13 if KIND in ("every tenth", "means") else EPOCH) == 0 or KIND == "one file" or stopping and KIND not in ("epochs",):
        save()
