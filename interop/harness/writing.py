"""Writes events files with TensorBoard's own writer."""

from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def write(path, events, append=False):
    """Writes a file of events, or adds them to what the file has. Its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab" if append else "wb") as file:
        writer = RecordWriter(file)
        if not append:
            writer.write(event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        for event in events:
            writer.write(event.SerializeToString())
