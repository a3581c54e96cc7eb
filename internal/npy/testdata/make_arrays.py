"""Writes the arrays of this folder with NumPy. Run: python make_arrays.py"""
import os

import numpy as np
from numpy.lib import format

here = os.path.dirname(os.path.abspath(__file__))


def save(name, array, version=None):
    with open(os.path.join(here, name + ".npy"), "wb") as f:
        format.write_array(f, array, version)


floats = np.arange(6).reshape(2, 3)
save("f4_c", floats.astype("<f4"))
save("f4_big", floats.astype(">f4"))
save("f4_fortran", np.asfortranarray(floats.astype("<f4")))
save("f4_v2", floats.astype("<f4"), (2, 0))
save("f4_v3", floats.astype("<f4"), (3, 0))
save("i8_fortran", np.asfortranarray(np.arange(24).reshape(2, 3, 4).astype("<i8")))
save("u2_big", np.arange(4).astype(">u2"))
save("bool", np.array([True, False, True]))
save("scalar", np.array(7, "<i4"))
save("empty", np.zeros([0, 5]))
save("half", np.array([1.5], "<f2"))
save("c8_big", np.array([1 + 2j], ">c8"))
save("strings", np.array([b"a", b"bc"]))
save("unicode", np.array(["a", "bc"]))
save("object", np.array([1, "a"], object))
save("record", np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f4")]))
save("date", np.array(["2020-01-01"], "datetime64[D]"))
