"""Log directories that hold every kind of value a writer may make, under strange names, in files that end anywhere."""

import numpy as np
from harness.writing import write
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2

NAMES = ["plain", "ü/日本", "x" * 70000, "e%2F?&=#+", "/lead", "trail/", " sp ace ", "quote\"'\\", "a\nb", "\u202eabc"]
NUMBERS = [1.5, float("nan"), float("inf"), float("-inf"), -0.0, 1e-45]
SCALAR, TENSOR, BLOBS = 1, 2, 3

Value = summary_pb2.Summary.Value


def floats(*values, shape=()):
    return shaped(tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_content=np.float32(values).tobytes()), shape)


def strings(values, shape=()):
    return shaped(tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=values), shape)


def shaped(tensor, shape):
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


def of(plugin, tag, data_class=0, content=b"", **value):
    result = Value(tag=tag, **value)
    result.metadata.plugin_data.plugin_name = plugin
    result.metadata.plugin_data.content = content
    result.metadata.data_class = data_class
    return result


def histogram(rng):
    n = rng.randrange(8)
    least = rng.choice([-1, float("nan"), float("-inf")])
    return summary_pb2.HistogramProto(min=least, max=9, num=n, bucket=[rng.randrange(3) for _ in range(n)], bucket_limit=sorted(rng.random() for _ in range(n)))


def images(rng):
    samples = [rng.randbytes(rng.choice([0, 5, 3000])) for _ in range(rng.randrange(20))]
    return strings([b"10", b"20", *samples], (len(samples) + 2,))


def clip(rng):
    return summary_pb2.Summary.Audio(sample_rate=1, num_channels=1, length_frames=2, encoded_audio_string=rng.randbytes(9), content_type="audio/wav")


def number(rng):
    return rng.choice(NUMBERS)


def either(rng, data_class):
    """Writers leave the data class out, or set it."""
    return rng.choice([0, data_class])


# By kind: a value of a tag.
KINDS = {
    "scalar v1": lambda r, t: Value(tag=t, simple_value=number(r)),
    "scalar v2": lambda r, t: of("scalars", t, either(r, SCALAR), r.choice([b"", b"\x08\x00"]), tensor=floats(number(r))),
    "scalar v1, v2": lambda r, t: KINDS[r.choice(["scalar v1", "scalar v2"])](r, t),
    "histogram v1": lambda r, t: Value(tag=t, histo=histogram(r)),
    "histogram v2": lambda r, t: of("histograms", t, either(r, TENSOR), tensor=floats(*range(9), shape=(3, 3))),
    "histogram, empty": lambda r, t: of("histograms", t, TENSOR, tensor=floats(shape=(0, 3))),
    "image v1": lambda r, t: Value(tag=t, image=summary_pb2.Summary.Image(width=r.randrange(3), height=1, encoded_image_string=r.randbytes(9))),
    "images v2": lambda r, t: of("images", t, either(r, BLOBS), tensor=images(r)),
    "audio v1": lambda r, t: Value(tag=t, audio=clip(r)),
    "audio v2": lambda r, t: of("audio", t, either(r, BLOBS), tensor=strings([b"wav", b"label"] * 2, (2, 2))),
    "audio, no labels": lambda r, t: of("audio", t, BLOBS, tensor=strings([b"wav"] * 3, (3,))),
    "text": lambda r, t: of("text", t, either(r, TENSOR), tensor=strings([r.choice([b"*a*", b"\xff\xfe", "ü".encode(), b"y" * 100000])])),
    "texts": lambda r, t: of("text", t, TENSOR, tensor=strings([b"a", b"b"], (2,))),
    "PR curve": lambda r, t: of("pr_curves", t, either(r, TENSOR), tensor=floats(*range(18), shape=(6, 3))),
    "mesh": lambda r, t: of("mesh", t, either(r, TENSOR), b"\x08\x00", tensor=floats(*range(9), shape=(1, 3, 3))),
    "hparams": lambda r, t: of("hparams", t, either(r, TENSOR), r.randbytes(3)),
    "Keras model": lambda r, t: of("graph_keras_model", t, either(r, BLOBS), tensor=strings([b"{}"])),
    "run metadata": lambda r, t: of("graph_run_metadata", t, either(r, BLOBS), tensor=strings([b"metadata"])),
    "layout": lambda r, t: of("custom_scalars", t, either(r, TENSOR), tensor=strings([b"layout"])),
    "own scalar": lambda r, t: of("mine", t, SCALAR, tensor=floats(number(r))),
    "own tensor": lambda r, t: of("mine", t, TENSOR, tensor=floats(1, 2, shape=(2,))),
    "own blobs": lambda r, t: of("mine", t, BLOBS, tensor=strings([b"a", b""], (2,))),
    "own, of no class": lambda r, t: of("mine", t, tensor=floats(1, 2, shape=(2,))),
    "own, empty": lambda r, t: of("mine", t, TENSOR),
    "nothing": lambda r, t: Value(tag=t),
}


def other_event(rng, event):
    """Now and then turns an event into one that is no summary."""
    match rng.randrange(60):
        case 0:
            event.graph_def = rng.randbytes(4)
        case 1:
            event.meta_graph_def = rng.randbytes(4)
        case 2:
            event.tagged_run_metadata.tag = f"step{event.step}"
            event.tagged_run_metadata.run_metadata = rng.randbytes(4)
        case 3:
            event.log_message.message = "hello"


def events(rng, kinds, step, wall):
    for _ in range(rng.randrange(40)):
        step += rng.choice([1, 1, 1, 10**9, 0])
        wall += 1
        event = event_pb2.Event(wall_time=wall, step=step)
        event.summary.SetInParent()
        for tag in rng.sample(sorted(kinds), rng.randrange(len(kinds) + 1)):
            event.summary.value.append(KINDS[kinds[tag]](rng, tag))
        other_event(rng, event)
        yield event


def write_logdir(rng, logdir):
    """Some runs of some files each. Some files are cut anywhere, and some hold nothing."""
    for depth in range(rng.randint(1, 3)):
        run = logdir.joinpath(*rng.choices(["a", "b", "ü", "e%2F x"], k=depth))
        kinds = {f"{kind} {rng.choice(NAMES)}": kind for kind in rng.sample(sorted(KINDS), rng.randint(1, 12))}
        step = 0
        for number in range(rng.randint(1, 3)):
            path = run / f"events.out.tfevents.{1700000000 + number}.host"
            made = list(events(rng, kinds, step, 1700000000.0 + 1000 * number))
            write(path, made)
            step = made[-1].step if made else step
            if rng.random() < 0.3:
                whole = path.read_bytes()
                path.write_bytes(whole[: rng.randint(0, len(whole))])
        if rng.random() < 0.1:
            (run / "empty.tfevents").touch()
