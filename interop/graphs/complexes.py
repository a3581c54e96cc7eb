"""Linear algebra on complex numbers, and variables that hold them."""

import numpy as np
import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def complex_matrix(name, *shape):
    return tf.complex(variable(name + "_re", shape), variable(name + "_im", shape))


def parts(outputs):
    """Complex outputs as real ones, which a loss may be made of."""
    split = {}
    for key, t in outputs.items():
        split[key + "_re"], split[key + "_im"] = tf.math.real(t), tf.math.imag(t)
    return split


@program(rtol=1e-3, atol=1e-4)
def complex_solutions():
    """A batch of systems of equations, and their factors, with gradients through all of them."""
    a, b = complex_matrix("a", 3, 4, 4), complex_matrix("b", 3, 4, 2)
    square = tf.linalg.matmul(a, a, adjoint_b=True) + 2 * tf.eye(4, dtype=tf.complex64)
    lower = tf.linalg.cholesky(square)
    q, r = tf.linalg.qr(a + 3 * tf.eye(4, dtype=tf.complex64))
    sign, log = tf.linalg.slogdet(square)
    out = {
        "lower": lower,
        "q": q,
        "r": r,
        "inverse": tf.linalg.inv(a + 2 * tf.eye(4, dtype=tf.complex64)),
        "determinant": tf.linalg.det(square),
        "sign": sign,
        "log": log,
        "solution": tf.linalg.solve(square, b),
        "adjoint": tf.linalg.solve(square + a, b, adjoint=True),
        "by_lower": tf.linalg.triangular_solve(lower, b),
        "by_upper": tf.linalg.triangular_solve(square, b, lower=False),
        "by_lower_adjoint": tf.linalg.triangular_solve(lower, b, adjoint=True),
        "by_upper_adjoint": tf.linalg.triangular_solve(square, b, lower=False, adjoint=True),
    }
    return trained(parts(out), rate=1e-3)


def raw_decompositions(x, hermitian):
    """What does not depend on the phases of vectors, which are free; those of Hermitian matrices too."""
    out = {}
    values, vectors = tf.linalg.eigh(hermitian)
    out["eigh"] = tf.linalg.eigvalsh(hermitian)
    out["eigh_values"], out["eigh_vectors"] = values, vectors
    square = x[..., :3]
    values, vectors = tf.linalg.eig(square)
    out["eig"], out["eig_alone"] = values, tf.linalg.eigvals(square)
    out["eig_again"] = tf.linalg.matmul(vectors * values[..., None, :], tf.linalg.inv(vectors))
    real = tf.math.real(square)
    values, vectors = tf.linalg.eig(real)
    out["eig_of_real"] = tf.linalg.matmul(vectors * values[..., None, :], tf.linalg.inv(vectors))
    for name, m in ("wide", x), ("tall", tf.linalg.adjoint(x)):
        for full in False, True:
            s, u, v = tf.linalg.svd(m, full_matrices=full)
            p = s.shape[-1]
            again = tf.linalg.matmul(u[..., :p] * tf.cast(s, m.dtype)[..., None, :], v[..., :p], adjoint_b=True)
            unit = tf.linalg.matmul(u, u, adjoint_b=True), tf.linalg.matmul(v, v, adjoint_b=True)
            q, r = tf.linalg.qr(m, full_matrices=full)
            for key, t in dict(s=s, again=again, u=unit[0], v=unit[1], q=q, r=r).items():
                out[f"{name}_{full}_{key}"] = t
        out[name + "_alone"] = tf.linalg.svd(m, compute_uv=False)
        y = m[..., :2]
        out[name + "_fast"] = tf.linalg.lstsq(m, y, l2_regularizer=0.1 if m.dtype == tf.complex64 else 0.0)
        out[name + "_shortest"] = tf.linalg.lstsq(m, y, fast=False)
    return out


@program(rtol=1e-3, atol=1e-4)
def complex_factors():
    out = {}
    for dtype in np.complex64, np.complex128:
        x = rng().normal(size=(2, 3, 5)) + 1j * rng(1).normal(size=(2, 3, 5))
        h = x @ np.conj(np.swapaxes(x, -1, -2)) - 4 * np.eye(3)
        made = raw_decompositions(tf.constant(x.astype(dtype)), tf.constant(h.astype(dtype)))
        out.update({f"{np.dtype(dtype).name}_{key}": t for key, t in made.items()})
        none = tf.zeros([0, 3, 3], dtype)
        out.update({f"none_{k}_{dtype.__name__}": t for k, t in enumerate([*tf.linalg.qr(none), *tf.linalg.svd(none), *tf.linalg.eig(none)])})
    return Built(fetches=out)
