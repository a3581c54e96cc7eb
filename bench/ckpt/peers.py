"""TensorFlow, safetensors and PyTorch save and restore what the program next to this does.

Each subcommand prints one JSON object: the work done, the seconds it took, and
the memory that it took besides the tensors.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import time
import zlib

import numpy as np

SAVES = 5
LARGE, SMALL, SMALL_COUNT = 25 << 20, 1 << 10, 2000


def make(large):
    """The tensors by name: the elements of number i count up from i and begin again after 1021."""
    tensors = {}
    for i in range(large + SMALL_COUNT):
        size = LARGE if i < large else SMALL
        tensors[f"model/layer_{i:05d}/kernel"] = (np.arange(size // 4) % 1021 + i).astype(np.float32)
    return tensors


def work(tensors):
    crc = 0
    for name in sorted(tensors):
        crc = zlib.crc32(tensors[name].view(np.uint8).data, crc)
    return f"{len(tensors)} tensors, {sum(t.nbytes for t in tensors.values())} bytes, digest {crc:08x}"


def memory(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(field + ":"))


def clear(folder):
    for path in pathlib.Path(folder).iterdir():
        path.unlink()


def report(done, seconds, **metrics):
    cpu = time.process_time()
    print(json.dumps({"work": done, "seconds": seconds, "cpu_seconds": cpu, "metrics": metrics}))


def timed_saves(tensors, folder, save):
    before, times = memory("VmRSS"), []
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the peak so far was that of making the tensors
    for _ in range(SAVES):
        clear(folder)
        begin = time.perf_counter()
        save(os.path.join(folder, "model.ckpt"))
        times.append(time.perf_counter() - begin)
    report(work(tensors), statistics.median(times), extra_mib=max(0, memory("VmHWM") - before))


def savev2(args):
    import tensorflow as tf

    tensors = make(args.large)
    held = [tf.constant(t) for t in tensors.values()]
    timed_saves(
        tensors, args.dir,
        lambda prefix: tf.raw_ops.SaveV2(prefix=prefix, tensor_names=list(tensors), shape_and_slices=[""] * len(held), tensors=held),
    )  # fmt: skip


def saver(args):
    import tensorflow.compat.v1 as tf

    tensors = make(args.large)
    with tf.Graph().as_default(), tf.Session() as sess:
        holders = {}
        for name, value in tensors.items():
            holders[name] = tf.placeholder(tf.float32, value.shape)
            tf.Variable(holders[name], name=name)
        sess.run(tf.global_variables_initializer(), {holders[name]: value for name, value in tensors.items()})
        s = tf.train.Saver(max_to_keep=1)
        timed_saves(tensors, args.dir, lambda prefix: s.save(sess, prefix, write_meta_graph=False))


def checkpoint(args):
    import tensorflow as tf

    tensors = make(args.large)
    c = tf.train.Checkpoint(variables=[tf.Variable(t) for t in tensors.values()])
    timed_saves(tensors, args.dir, c.write)


def safetensors(args):
    from safetensors.numpy import save_file

    tensors = make(args.large)
    timed_saves(tensors, args.dir, lambda prefix: save_file(tensors, prefix))


def torch_save(args):
    import torch

    tensors = make(args.large)
    held = {name: torch.from_numpy(t) for name, t in tensors.items()}
    timed_saves(tensors, args.dir, lambda prefix: torch.save(held, prefix))


def torch_open(args):
    import torch

    name = os.path.join(args.dir, "model.pt")
    if not os.path.exists(name):
        torch.save({key: torch.from_numpy(t) for key, t in make(args.large).items()}, name)
    begin = time.perf_counter()
    got = torch.load(name, mmap=True)
    seconds = time.perf_counter() - begin
    report(work({key: t.numpy() for key, t in got.items()}), seconds)


def restorev2(args):
    import tensorflow as tf

    prefix = os.path.join(args.dir, "model.ckpt")
    names = [f"model/layer_{i:05d}/kernel" for i in range(args.large + SMALL_COUNT)]
    begin = time.perf_counter()
    got = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=[tf.float32] * len(names))
    seconds = time.perf_counter() - begin
    report(work({n: t.numpy() for n, t in zip(names, got)}), seconds)


def load(args):
    from safetensors.numpy import load_file, save_file

    name = os.path.join(args.dir, "model.safetensors")
    if not os.path.exists(name):
        save_file(make(args.large), name)
    begin = time.perf_counter()
    got = load_file(name)
    seconds = time.perf_counter() - begin
    report(work(got), seconds)


def open_lazily(args):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    name = os.path.join(args.dir, "model.safetensors")
    if not os.path.exists(name):
        save_file(make(args.large), name)
    begin = time.perf_counter()
    with safe_open(name, framework="np") as f:
        slices = {key: f.get_slice(key) for key in f.keys()}
        seconds = time.perf_counter() - begin
        report(work({key: s[:] for key, s in slices.items()}), seconds)


def read_safetensors(name):
    from safetensors.numpy import load_file

    return load_file(name)


def read_pt(name):
    import torch

    return {key: t.numpy() for key, t in torch.load(name, mmap=True, weights_only=True).items()}


def read_h5(name):
    import h5py

    found = {}
    with h5py.File(name) as f:
        f.visititems(lambda key, value: found.update({key: value[()]}) if isinstance(value, h5py.Dataset) else None)
    return found


def write_safetensors(tensors, name):
    from safetensors.numpy import save_file

    save_file(tensors, name)


def write_pt(tensors, name):
    import torch

    torch.save({key: torch.from_numpy(t) for key, t in tensors.items()}, name)


def write_h5(tensors, name):
    import h5py

    with h5py.File(name, "w") as f:
        for key, t in tensors.items():
            f[key] = t


def function(verb, ext):
    """What reads or writes files of that extension; its library is loaded, which is not part of any race."""
    importlib.import_module({".safetensors": "safetensors.numpy", ".pt": "torch", ".h5": "h5py"}[ext])
    return globals()[verb + ext.replace(".", "_")]


def read_file(args):
    """What is mapped is read once, as a program that uses it would."""
    read = function("read", args.ext)
    begin = time.perf_counter()
    got = {key: np.array(t) if args.ext == ".pt" else t for key, t in read(os.path.join(args.dir, "model" + args.ext)).items()}
    seconds = time.perf_counter() - begin
    report(work(got), seconds)


def convert_file(args):
    name = os.path.join(args.to, "copy" + args.as_)
    read, write = function("read", args.ext), function("write", args.as_)
    begin = time.perf_counter()
    got = read(os.path.join(args.dir, "model" + args.ext))
    write(got, name)
    with open(name, "rb+") as f:
        os.fsync(f.fileno())
    seconds = time.perf_counter() - begin
    report(f"{len(got)} tensors, {sum(t.nbytes for t in got.values())} bytes", seconds)


def main():
    commands = {
        "read-file": read_file, "convert-file": convert_file,
        "savev2": savev2, "saver": saver, "checkpoint": checkpoint, "safetensors": safetensors,
        "restorev2": restorev2, "load": load, "open": open_lazily, "torch-save": torch_save, "torch-open": torch_open,
    }  # fmt: skip
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=commands)
    parser.add_argument("-dir", required=True)
    parser.add_argument("-to")
    parser.add_argument("-from", dest="ext")
    parser.add_argument("-as", dest="as_")
    parser.add_argument("-large", type=int, default=40)
    args = parser.parse_args()
    try:
        commands[args.command](args)
    except ModuleNotFoundError as err:
        print(err, file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
