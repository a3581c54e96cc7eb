"""Lists a file of tensors with the library of its format, one line with name and shape for each."""

import sys


def safetensors(name):
    from safetensors import safe_open

    with safe_open(name, framework="np") as f:
        for key in f.keys():
            yield key, f.get_slice(key).get_shape()


def npz(name):
    import numpy as np

    with np.load(name) as f:
        for key in f.files:
            yield key, f[key].shape


def pt(name):
    import torch

    for key, value in torch.load(name, mmap=True, weights_only=True).items():
        yield key, tuple(value.shape)


def h5(name):
    import h5py

    found = []
    with h5py.File(name) as f:
        f.visititems(lambda key, value: found.append((key, value.shape)) if isinstance(value, h5py.Dataset) else None)
    return found


try:
    for key, shape in globals()[sys.argv[1].rpartition(".")[2]](sys.argv[1]):
        print(key, shape)
except ModuleNotFoundError as err:
    print(err, file=sys.stderr)
    sys.exit(77)
