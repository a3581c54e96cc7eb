"""Element-wise mathematics, reductions and linear algebra, with their gradients."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable


def matrix(shape=(4, 6), name="x", low=-2.0):
    x = tf1.placeholder(tf.float32, [None, *shape[1:]], name)
    return x, lambda n: {name + ":0": rng(n).uniform(low, 2, shape).astype("f")}


@program
def unary():
    x, feeds = matrix()
    h = x * variable("w", [6])
    pos = tf.abs(h) + 0.1
    unit = tf.tanh(h) * 0.9
    m = tf.math
    out = {
        "exp": tf.exp(h),
        "expm1": m.expm1(h),
        "log": m.log(pos),
        "log1p": m.log1p(pos),
        "sqrt": tf.sqrt(pos),
        "rsqrt": m.rsqrt(pos),
        "sin": tf.sin(h),
        "cos": tf.cos(h),
        "tan": tf.tan(unit),
        "asin": tf.asin(unit),
        "acos": tf.acos(unit),
        "atan": tf.atan(h),
        "sinh": tf.sinh(h),
        "cosh": tf.cosh(h),
        "asinh": tf.asinh(h),
        "acosh": tf.acosh(pos + 1),
        "atanh": tf.atanh(unit),
        "erf": m.erf(h),
        "erfc": m.erfc(h),
        "lgamma": m.lgamma(pos),
        "digamma": m.digamma(pos),
        "square": tf.square(h),
        "reciprocal": m.reciprocal(pos),
        "sign": tf.sign(h),
        "floor": tf.floor(h * 3),
        "ceil": m.ceil(h * 3),
        "round": tf.round(h * 3),
        "rint": m.rint(h * 3),
        "neg": -h,
        "abs": abs(h),
        "nan": m.is_nan(h),
        "inf": m.is_inf(h),
        "finite": m.is_finite(h),
        "erfinv": m.erfinv(unit),
        "ndtri": m.ndtri(tf.sigmoid(h)),
        "igamma": tf.stop_gradient(m.igamma(pos, pos)),
        "lbeta": m.lbeta(pos),
        "bessel": m.bessel_i0e(h),
        "logit": -m.log(1 / tf.sigmoid(h) - 1),
    }
    return trained(out, rate=1e-3, feeds=feeds)


@program
def binary():
    x, feeds = matrix()
    w = variable("w", [6])
    y = x * w
    column = variable("c", [4, 1])
    pos = tf.abs(y) + 0.5
    m = tf.math
    out = {
        "add": y + column,
        "sub": column - y,
        "mul": y * column,
        "div": y / (column + 2),
        "pow": tf.pow(pos, column),
        "power": pos**2,
        "maximum": tf.maximum(y, column),
        "minimum": tf.minimum(y, column),
        "squared": tf1.squared_difference(y, column),
        "atan2": tf.atan2(y, column),
        "mod": m.floormod(x, pos),
        "floordiv": m.floordiv(x, pos),
        "no_nan": m.divide_no_nan(y, tf.nn.relu(column)),
        "mul_no_nan": m.multiply_no_nan(y, tf.round(column)),
        "xlogy": m.xlogy(y, pos),
        "xdivy": m.xdivy(y, pos),
        "xlog1py": m.xlog1py(y, pos),
        "less": y < column,
        "at_most": y <= column,
        "equal": tf.equal(x, x),
        "differ": tf.not_equal(y, column),
        "over": y > column,
        "and": tf.logical_and(y > 0, x > 0),
        "or": tf.logical_or(y > 0, x > 0),
        "xor": m.logical_xor(y > 0, x > 0),
        "not": tf.logical_not(y > 0),
        "where": tf1.where(y > 0, y, -y),
        "where_v2": tf.where(column > 0, y, w),
        "clip": tf.clip_by_value(y, -0.3, 0.3),
        "add_n": tf.add_n([x, y, y]),
        "lerp": y + 0.3 * (column - y),
        "l": tf.nn.l2_loss(y),
        "accumulate": tf1.accumulate_n([x, y]),
        "truncated": tf1.truncatediv(tf.cast(x * 9, tf.int32), 2),
        "remainder": tf1.truncatemod(tf.cast(x * 9, tf.int32), 4),
        "polyval": m.polyval([1.0, 2.0, y], x),
        "nextafter": m.nextafter(x, x + 1),
    }
    return trained(out, rate=1e-3, feeds=feeds)


@program
def integers():
    x, feeds = matrix()
    w = variable("w", [6])
    i = tf.cast(x * 10, tf.int32)
    l = tf.cast(x * 100, tf.int64)
    b = tf.bitwise
    out = {
        "sum": i + 3,
        "product": l * 2,
        "floordiv": i // 3,
        "mod": i % 4,
        "less": i < 2,
        "max": tf.reduce_max(l, 1),
        "min": tf.reduce_min(i, 0),
        "prod": tf.reduce_prod(i, 1),
        "total": tf.reduce_sum(l),
        "mean": tf.reduce_mean(i),
        "abs": tf.abs(l),
        "neg": -i,
        "square": i * i,
        "sign": tf.sign(i),
        "pow": tf.pow(i, 2),
        "and": b.bitwise_and(i, 12),
        "or": b.bitwise_or(i, 12),
        "xor": b.bitwise_xor(i, 12),
        "invert": b.invert(i),
        "left": b.left_shift(i, 2),
        "right": b.right_shift(i, 1),
        "short": tf.cast(i, tf.int16),
        "byte": tf.cast(tf.abs(i), tf.uint8),
        "maximum": tf.maximum(i, 3),
        "clip": tf.clip_by_value(i, -5, 5),
        "cumsum": tf.cumsum(i, 1),
        "argmax": tf.argmax(i, 1, output_type=tf.int32),
        "matmul": tf.matmul(i, i, transpose_b=True),
        "relu": tf.nn.relu(i),
        "small_max": tf.maximum(tf.cast(i, tf.int8), tf.cast(1, tf.int8)),
        "small_less": tf.cast(i, tf.int16) < 3,
        "small_sum": tf.reduce_sum(tf.cast(i, tf.int16)),
        "float": tf.cast(i, tf.float32) * w,
        "to_bool": tf.cast(i, tf.bool),
        "bincount": tf.math.bincount(tf.abs(i)),
        "range": tf.range(3, 20, 4),
        "lrange": tf.range(tf.constant(2, tf.int64)),
    }
    return trained(out, feeds=feeds)


@program(atol=2e-4)  # the gradient is a sum of numbers up to some hundreds that nearly cancel
def reductions():
    x = tf1.placeholder(tf.float32, [None, 3, 5], "x")
    h = x * variable("w", [3, 1])
    out = {
        "sum": tf.reduce_sum(h, -1),
        "keep": tf.reduce_sum(h, [0, -1], keepdims=True),
        "mean": tf.reduce_mean(h, [1]),
        "all_mean": tf.reduce_mean(h),
        "max": tf.reduce_max(h, axis=-2),
        "min": tf.reduce_min(h, axis=[0, 2], keepdims=True),
        "prod": tf.reduce_prod(h + 2, axis=1),
        "lse": tf.reduce_logsumexp(h, axis=-1),
        "lse_keep": tf.reduce_logsumexp(h, [0, 1], keepdims=True),
        "any": tf.reduce_any(h > 1, 1),
        "all": tf.reduce_all(h > -1, [0, 2]),
        "norm": tf.norm(h, axis=1),
        "norm1": tf.norm(h, ord=1, axis=-1),
        "euclid": tf.math.reduce_euclidean_norm(h, 2),
        "std": tf.math.reduce_std(h, axis=2),
        "variance": tf.math.reduce_variance(h),
        "moments": tf.nn.moments(h, [0, 1])[1],
        "argmax": tf.argmax(h, -1),
        "argmin": tf.argmin(h, axis=0),
        "count": tf.math.count_nonzero(h, axis=1),
        "cumsum": tf.cumsum(h, 1, exclusive=True),
        "cumsum_back": tf.cumsum(h, -1, reverse=True),
        "cumprod": tf.math.cumprod(h + 2, 2, exclusive=True, reverse=True),
        "zero_fraction": tf.nn.zero_fraction(tf.nn.relu(h)),
        "empty": tf.reduce_sum(h, []),
        "max_of_ties": tf.reduce_max(tf.round(h), 2),
    }
    return trained(out, feeds=lambda n: {"x:0": rng(n).uniform(-2, 2, [4, 3, 5]).astype("f")})


@program
def products():
    x = tf1.placeholder(tf.float32, [None, 4, 5], "x")
    w, v = variable("w", [5, 3]), variable("v", [6, 5, 3])
    flat = tf.reshape(x, [-1, 5])
    square = tf.matmul(x, x, transpose_b=True) + tf.eye(4) * 3
    out = {
        "matmul": flat @ w,
        "ta": tf.matmul(flat, flat, transpose_a=True),
        "tb": tf.matmul(w, flat[:, :3], transpose_b=True),
        "batch": tf.matmul(x, v),
        "batch_ta": tf.matmul(x, x, transpose_a=True),
        "broadcast": x @ w,
        "einsum": tf.einsum("bij,jk->bik", x, w),
        "attention": tf.einsum("bid,bjd->bij", x, x),
        "outer": tf.einsum("i,j->ij", w[:, 0], w[0]),
        "trace": tf.einsum("bii->b", square),
        "tensordot": tf.tensordot(x, w, [[2], [0]]),
        "tensordot2": tf.tensordot(w, v, [[0], [1]]),
        "matvec": tf.linalg.matvec(x, w[:, 0]),
        "xw": tf1.nn.xw_plus_b(flat, w, tf.constant([1.0, 2, 3])),
        "diag": tf.linalg.diag(w[:, 0]),
        "diag_part": tf.linalg.diag_part(square),
        "linalg_trace": tf.linalg.trace(square),
        "band": tf.linalg.band_part(square, 1, 0),
        "set_diag": tf.linalg.set_diag(square, x[:, :, 0]),
        "transpose": tf.linalg.matrix_transpose(x),
        "cross": tf.linalg.cross(w, w[::-1]),
        "global_norm": tf.linalg.global_norm([w, v]),
        "dot_product": tf.reduce_sum(tf.multiply(flat, w[:, 1]), 1, keepdims=True),
        "eye": tf.eye(3, 4),
        "cosine": tf.reduce_sum(tf.nn.l2_normalize(w, 0) * w, 0),
        "diag_tensor": tf1.diag(w[0]),
        "tril": tf.linalg.LinearOperatorLowerTriangular(square).to_dense(),
    }
    return trained(out, feeds=lambda n: {"x:0": rng(n).uniform(-1, 1, [6, 4, 5]).astype("f")})


@program
def decompositions():
    w = variable("w", [4, 4])
    a = w @ tf.transpose(w) + tf.eye(4) * 2
    out = {
        "cholesky": tf.linalg.cholesky(a),
        "inverse": tf.linalg.inv(a),
        "det": tf.linalg.det(a),
        "solve": tf.linalg.solve(a, w),
        "triangular": tf.linalg.triangular_solve(tf.linalg.cholesky(a), w),
        "logdet": tf.linalg.logdet(a),
    }
    return trained(out)


@program
def double_math():
    x = tf1.placeholder(tf.float64, [None, 5], "x")
    h = x @ variable("w", [5, 4], dtype=tf.float64)
    out = {
        "exp": tf.exp(h),
        "softmax": tf.nn.softmax(h),
        "lse": tf.reduce_logsumexp(h, 1),
        "erf": tf.math.erf(h),
        "pow": tf.pow(tf.abs(h) + 0.1, 1.7),
        "xent": tf1.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(x[:, :4]), logits=h),
        "sorted": tf.sort(h, 1),
        "gather": tf.gather(h, [1, 0, 1], axis=1),
        "segments": tf.math.unsorted_segment_sum(h, [0, 2, 2, 1], 3),
        "einsum": tf.einsum("ij,ik->jk", h, x),
        "stack": tf.stack([h, -h]),
    }
    return trained(out, feeds=lambda n: {"x:0": rng(n).uniform(-1, 1, [4, 5])})


@program
def complex_math():
    w = variable("w", [8])
    z = tf.complex(w, w * 2)
    out = {
        "real": tf.math.real(z * z),
        "imag": tf.math.imag(z),
        "abs": tf.abs(z),
        "conj": tf.math.imag(tf.math.conj(z)),
        "fft": tf.math.real(tf.signal.fft(z)),
    }
    return trained(out)


@program
def rare_math():
    x, feeds = matrix()
    h = tf.abs(x * variable("w", [6])) + 0.5
    out = {
        "betainc": tf.math.betainc(tf.stop_gradient(h), tf.stop_gradient(h), tf.sigmoid(h)),
        "gamma": tf1.random.gamma([3], h, seed=5),
        "cumulative": tf.math.cumulative_logsumexp(h, 1),
        "igamma": tf.math.igamma(h, h),
    }
    return trained(out, feeds=feeds)
