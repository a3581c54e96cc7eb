"""Rarer building blocks in trainings: CTC, crops and patches of images, fused cells, decompositions, crossed columns, and
the first forms of queues, tables and readers."""

import tensorflow as tf

from graphs.recorder import Built, program, rng, tf1, trained, variable

R = tf.raw_ops


def matrix(n):
    return {"x:0": rng(n).uniform(-1, 1, [6, 4]).astype("f")}


def inputs():
    return tf1.placeholder(tf.float32, [6, 4], "x")


@program
def ctc():
    x = inputs()
    logits = tf.reshape(x @ variable("w", [4, 20]), [6, 4, 5])
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [3, 0]], tf.constant([1, 1, 3, 0, 2, 2]), [4, 2])
    lengths = tf.constant([6, 5, 4, 6])
    loss = tf1.nn.ctc_loss(labels, logits, lengths)
    (decoded,), score = tf.nn.ctc_greedy_decoder(logits, lengths)
    distance = tf.edit_distance(tf.cast(decoded, tf.int32), labels)
    return trained({"loss_of": loss, "decoded": decoded.values, "score": score, "distance": distance}, tf.reduce_mean(loss), feeds=matrix)


@program
def ctc_dense():
    x = inputs()
    logits = tf.reshape(x @ variable("w", [4, 20]), [6, 4, 5])
    labels = tf.constant([[1, 1], [3, 0], [2, 1], [4, 2]])
    loss = tf.nn.ctc_loss(labels, logits, tf.constant([2, 1, 2, 2]), tf.constant([6, 6, 5, 6]), blank_index=0)
    return trained({"loss_of": loss}, tf.reduce_mean(loss), feeds=matrix)


@program
def image_parts():
    image = tf.reshape(inputs() @ variable("w", [4, 30]), [2, 9, 5, 2])
    v1 = tf1.image
    boxes = variable("boxes", [2, 4])
    out = {
        "patches": v1.extract_image_patches(image, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        "crop": v1.crop_and_resize(image, tf.sigmoid(boxes), [1, 0], [3, 4]),
        "nearest": v1.crop_and_resize(image, tf.constant([[0.1, 0.2, 0.8, 0.9]]), [1], [4, 3], method="nearest"),
        "bicubic": v1.resize_bicubic(image, [5, 8]),
        "half": tf.image.resize(image, [7, 11], "bicubic"),
        "dilation": tf1.nn.dilation2d(image, variable("f", [2, 2, 2]), [1, 1, 2, 1], [1, 2, 1, 1], "VALID"),
        "erosion": tf1.nn.erosion2d(image, variable("g", [2, 2, 2]), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
        "blocks": R.SpaceToBatch(input=image, paddings=[[1, 0], [0, 1]], block_size=2),
    }
    loss = tf.add_n([tf.reduce_mean(tf.square(v)) for v in out.values()])
    out["area"] = v1.resize_area(image, [4, 3])
    out["boxes"] = tf.image.non_max_suppression(tf.reshape(image[0], [-1, 10])[:, :4], tf.reshape(image[0], [-1, 10])[:, 5], 3)
    return trained(out, loss, feeds=matrix)


@program
def fused_cells():
    x = tf.reshape(inputs() @ variable("in", [4, 6]), [3, 2, 6])
    u = 5
    zeros = tf.zeros([2, u])
    parts = [variable(n, s) for n, s in (("w", [6 + u, 4 * u]), ("wci", [u]), ("wcf", [u]), ("wco", [u]), ("b", [4 * u]))]
    keys = dict(zip(("w", "wci", "wcf", "wco", "b"), parts))
    first = R.BlockLSTM(seq_len_max=tf.constant(3, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, use_peephole=True, **keys)
    second = R.BlockLSTMV2(seq_len_max=tf.constant(3, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, **keys)
    out = {"first": first.h, "second": second.h, "state": first.cs[-1]}
    return trained(out, tf.reduce_mean(tf.square(first.h - 1)) + tf.reduce_mean(tf.square(second.h + 1)), feeds=matrix)


@program
def eigen_and_squares():
    given = inputs()
    x = given @ variable("w", [4, 4]) + variable("b", [4])
    gram = tf.transpose(x) @ x + tf.linalg.diag([1.0, 2.0, 3.0, 4.0])
    values, vectors = tf.linalg.eigh(gram)
    s, u, v = tf.linalg.svd(x)
    solved = tf.linalg.lstsq(x + tf.eye(6, 4), given, l2_regularizer=0.5)
    out = {"values": values, "vectors": vectors, "singular": s, "again": tf.linalg.matmul(u * s, v, adjoint_b=True), "solved": solved}
    loss = tf.reduce_sum(tf.math.log(values)) + tf.reduce_mean(tf.square(vectors)[:, 0]) + tf.reduce_sum(s) + tf.reduce_mean(tf.square(solved))
    return trained(out, loss, feeds=matrix)


@program
def crossed_columns():
    x = inputs()
    words = tf.constant([["a"], ["b"], ["a"], ["c"], ["d"], ["b"]])
    numbers = tf.constant([[3], [1], [3], [9], [0], [1]], tf.int64)
    sparse = tf.sparse.from_dense(numbers)
    hashed = tf.sparse.cross_hashed([words, sparse], num_buckets=30)
    table = variable("table", [30, 4])
    looked = tf1.nn.embedding_lookup_sparse(table, tf.sparse.fill_empty_rows(hashed, tf.constant(7, tf.int64))[0], None, combiner="mean")
    y = looked * x
    left, right = tf1.sparse_split(sp_input=sparse, num_split=2, axis=0)
    out = {
        "y": y,
        "hashed": hashed.values,
        "texts": tf.sparse.cross([words, words]).values,
        "slice": tf.sparse.slice(sparse, [1, 0], [3, 1]).values,
        "left": left.values,
        "right": right.indices,
    }
    return trained(out, tf.reduce_mean(tf.square(y - 1)), feeds=matrix)


@program(steps=3)
def first_forms():
    """Queues and tables as the first releases made them."""
    queue = R.FIFOQueue(component_types=[tf.float32], shapes=[[4]], capacity=50)
    fill = R.QueueEnqueueMany(handle=queue, components=[tf.reshape(tf.range(120.0), [30, 4])])
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, fill)
    batch = R.QueueDequeueMany(handle=queue, n=5, component_types=[tf.float32])[0]
    batch = tf.ensure_shape(batch, [5, 4])
    h = batch / 100 @ variable("w", [4, 3])
    return trained({"batch": batch, "h": h}, tf.reduce_mean(tf.square(h - 1)))


@program(steps=3)
def staged():
    """What a step stages, it or a later one takes out again."""
    x = inputs()
    kw = dict(shared_name="area", dtypes=[tf.float32, tf.int32])
    put = R.Stage(values=[x @ variable("w", [4, 3]), tf.constant([1, 2])], capacity=3, shared_name="area")
    with tf.control_dependencies([put]):
        h, n = R.Unstage(capacity=3, **kw)
    with tf.control_dependencies([h]):
        size = R.StageSize(capacity=3, **kw)
    return Built(None, {"h": tf.ensure_shape(h, [6, 3]), "n": n, "size": size}, matrix)


@program
def ranked():
    """Metrics that compare sets of classes."""
    labels = tf.constant([[0, 2], [1, 1], [3, 0], [2, 3], [0, 1], [3, 3]], tf.int64)
    scores = inputs() @ variable("w", [4, 4])
    out = {}
    for name in ("recall_at_k", "precision_at_k"):
        value, update = getattr(tf1.metrics, name)(labels, scores, 2)
        with tf.control_dependencies([update]):
            out[name] = tf.identity(update)
    return Built(None, out, matrix)


def older():
    """Lets the graph hold ops that later versions of graphs may not."""
    tf.import_graph_def(tf1.GraphDef(versions=dict(producer=8)))


@program(steps=2)
def first_arrays():
    """Arrays and stacks of tensors as the first releases made them."""
    older()
    x = inputs()
    flow = tf.constant(0.0)
    h = x @ variable("w", [4, 3])
    out = {}
    array = R.TensorArrayV2(size=4, dtype=tf.float32, element_shape=[3], clear_after_read=False)
    written = R.TensorArrayWriteV2(handle=array, index=2, value=h[0], flow_in=flow)
    written = R.TensorArrayScatterV2(handle=array, indices=[0, 3, 1], value=h[1:4], flow_in=written)
    out["read"] = R.TensorArrayReadV2(handle=array, index=2, flow_in=written, dtype=tf.float32)
    out["gathered"] = R.TensorArrayGatherV2(handle=array, indices=[3, 1], flow_in=written, dtype=tf.float32)
    out["size"] = R.TensorArraySizeV2(handle=array, flow_in=written)
    grad = R.TensorArrayGradV2(handle=array, flow_in=written, source="g")
    added = R.TensorArrayWriteV2(handle=grad, index=1, value=h[4], flow_in=written)
    added = R.TensorArrayWriteV2(handle=grad, index=1, value=h[5], flow_in=added)
    out["added"] = R.TensorArrayReadV2(handle=grad, index=1, flow_in=added, dtype=tf.float32)
    pieces = R.TensorArrayV2(size=2, dtype=tf.float32)
    split = R.TensorArraySplitV2(handle=pieces, value=h, lengths=tf.constant([4, 2], tf.int64), flow_in=flow)
    out["joined"], out["lengths"] = R.TensorArrayConcatV2(handle=pieces, flow_in=split, dtype=tf.float32)
    with tf.control_dependencies([out["joined"], out["lengths"]]):
        closed = R.TensorArrayCloseV2(handle=pieces)
    # TensorFlow itself cannot differentiate these.
    kept = {k: tf.stop_gradient(v) if v.dtype == tf.float32 else v for k, v in out.items()}
    with tf.control_dependencies([closed]):
        return trained({**kept, "h": tf.identity(h)}, tf.reduce_mean(tf.square(h - 1)), feeds=matrix)


@program(steps=1)  # TensorFlow waits for ever in the next
def staged_by_key():
    """Elements of staging areas that have keys, whole and in parts."""
    x = inputs()
    h = x @ variable("w", [4, 3])
    out = {}
    empty = h
    for ordered in ("", "Ordered"):
        kw = dict(shared_name="area" + ordered, capacity=9, memory_limit=10000)
        op = lambda name: getattr(R, ordered + name)  # noqa: B023
        types = [tf.float32, tf.int32]
        with tf.control_dependencies([empty]):
            put = op("MapStage")(key=tf.constant(5, tf.int64), indices=[0, 1], values=[h, tf.constant([1, 2])], dtypes=types, **kw)
        with tf.control_dependencies([put]):
            half = op("MapStage")(key=tf.constant(3, tf.int64), indices=[1], values=[tf.constant([7])], dtypes=types, **kw)
        with tf.control_dependencies([half]):
            waiting = op("MapIncompleteSize")(dtypes=types, **kw)
        with tf.control_dependencies([waiting]):
            rest = op("MapStage")(key=tf.constant(3, tf.int64), indices=[0], values=[h * 2], dtypes=types, **kw)
        with tf.control_dependencies([rest]):
            size = op("MapSize")(dtypes=types, **kw)
        with tf.control_dependencies([size]):
            seen = op("MapPeek")(key=tf.constant(3, tf.int64), indices=[0, 1], dtypes=types, **kw)
        with tf.control_dependencies(seen):
            taken = op("MapUnstage")(key=tf.constant(3, tf.int64), indices=[1], dtypes=[tf.int32], **kw)
        with tf.control_dependencies(taken):
            left = op("MapUnstage")(key=tf.constant(3, tf.int64), indices=[0], dtypes=[tf.float32], **kw)
        with tf.control_dependencies(left):
            key, last = op("MapUnstageNoKey")(indices=[0, 1], dtypes=types, **kw)
        with tf.control_dependencies(last):
            empty = op("MapSize")(dtypes=types, **kw)
        parts = dict(waiting=waiting, size=size, seen=seen[0], numbers=taken[0], left=left[0], key=key, last=last[0], empty=empty)
        out.update({ordered + k: tf.identity(v) for k, v in parts.items()})
    return Built(None, out, matrix)


@program(steps=3)
def staged_and_seen():
    h = inputs() @ variable("w", [4, 3])
    kw = dict(shared_name="plain", dtypes=[tf.float32], capacity=2, memory_limit=150)
    put = R.Stage(values=[h], capacity=2, memory_limit=150, shared_name="plain")
    with tf.control_dependencies([put]):
        seen = R.StagePeek(index=0, **kw)
    with tf.control_dependencies(seen):
        taken = R.Unstage(**kw)
    return Built(None, {"peeked": tf.identity(seen[0]), "taken": tf.identity(taken[0])}, matrix)


@program(steps=3)
def slices_of_variables():
    """Variables that are read and assigned in parts."""
    x = inputs()
    out = {}
    for name, resource in (("ref", False), ("resource", True)):
        v = variable(name, [6, 4], resource=resource)
        kept = variable(name + "_kept", [2, 5, 3], resource=resource, trainable=False)
        put = kept[1, ::2, -1:].assign(x[:3, 1:2])
        with tf.control_dependencies([put]):
            again = kept[:, 3].assign(tf.reshape(x[3:5, :3], [2, 3]))
        with tf.control_dependencies([again]):
            out[name] = tf.identity(kept.read_value() if resource else kept)
        out[name + "_at"] = tf.gather_nd(v, [[1, 2], [5, 0], [1, 2]]) + tf.gather_nd(v, [[3], [1]])[0, 1]
        out[name + "_rows"] = tf.gather(v, [2, 0]) * x[:2]
        out[name + "_update"] = R.TensorStridedSliceUpdate(input=tf.stop_gradient(v * x), begin=[1, 0], end=[3, 4], strides=[1, 2], value=x[:2, :2])
    return trained(out, feeds=matrix)


@program(steps=3)
def kept_tables():
    """Tables that are read whole, and made smaller."""
    keys = tf.constant([5, 3, 9, 7], tf.int64)
    out = {}
    dense = R.MutableDenseHashTableV2(empty_key=tf.constant(-1, tf.int64), deleted_key=tf.constant(-2, tf.int64), value_dtype=tf.float32, value_shape=[2], shared_name="d")
    rows = R.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2], shared_name="r")
    plain = R.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="p")
    x = inputs()
    for name, table, values in (("dense", dense, x[:4, :2]), ("rows", rows, x[1:5, 1:3]), ("plain", plain, tf.as_string(x[:4, 0]))):
        put = R.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
        with tf.control_dependencies([put]):
            gone = R.LookupTableRemoveV2(table_handle=table, keys=keys[1:2])
        default = {"dense": [7.0, 8.0], "rows": [1.0, 2.0], "plain": "none"}[name]
        with tf.control_dependencies([gone]):
            out[name] = R.LookupTableFindV2(table_handle=table, keys=tf.constant([9, 3, 4], tf.int64), default_value=default)
            out[name + "_size"] = R.LookupTableSizeV2(table_handle=table)
            if name != "dense":  # that tells its empty places, too
                k, v = R.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=values.dtype)
                order = tf.argsort(k)
                out[name + "_keys"], out[name + "_values"] = tf.gather(k, order), tf.gather(v, order)
    whole = tf.SparseTensor([[0, 1], [0, 4], [2, 0], [2, 2]], x[:4, 0], [3, 5])
    handles = R.AddManySparseToTensorsMap(sparse_indices=whole.indices, sparse_values=whole.values, sparse_shape=whole.dense_shape, shared_name="s")
    one = R.AddSparseToTensorsMap(sparse_indices=whole.indices[:2, 1:], sparse_values=whole.values[:2], sparse_shape=[9], shared_name="s")
    took = R.TakeManySparseFromTensorsMap(sparse_handles=tf.concat([handles[::-1], [one]], 0), dtype=tf.float32, shared_name="s")
    out.update(taken_indices=took.sparse_indices, taken_values=took.sparse_values, taken_shape=took.sparse_shape)
    return Built(None, {k: tf.identity(v) for k, v in out.items()}, matrix)


@program(steps=5)
def chosen_elements():
    """Data sets that take turns, and elements that come once."""
    sets = [tf.data.Dataset.range(i, i + 4) for i in (0, 10, 20)]
    choice = tf.data.Dataset.from_tensor_slices(tf.constant([2, 0, 1, 1, 2, 0, 0, 1], tf.int64)).repeat(3)
    chosen = tf1.data.make_one_shot_iterator(tf.data.Dataset.choose_from_datasets(sets, choice, stop_on_empty_dataset=False)).get_next()
    numbers = tf.data.Dataset.from_tensor_slices(tf.constant([3, 1, 3, 2, 1, 5, 8, 5, 9])).unique()
    words = tf.data.Dataset.from_tensor_slices(["b", "a", "b", "", "a", "c", "", "d"]).unique()
    out = {"chosen": chosen}
    out["number"] = tf1.data.make_one_shot_iterator(numbers).get_next()
    out["word"] = tf1.data.make_one_shot_iterator(words).get_next()
    rows = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(8), [4, 2]))
    loose = R.ExperimentalUnbatchDataset(input_dataset=rows._variant_tensor, output_types=[tf.int32], output_shapes=[[]])
    iterator = R.IteratorV2(shared_name="loose", container="", output_types=[tf.int32], output_shapes=[[]])
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, R.MakeIterator(dataset=loose, iterator=iterator))
    out["loose"] = R.IteratorGetNext(iterator=iterator, output_types=[tf.int32], output_shapes=[[]])[0]
    return Built(None, out)
