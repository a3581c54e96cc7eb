"""Reads events files with TensorFlow's own reader, as the truth that TensorBoard's answers are compared with."""

import pathlib

import tensorflow as tf

SessionLog = tf.compat.v1.SessionLog


def files(logdir):
    """The events files directly in logdir, in the order in which TensorBoard reads them."""
    return sorted(p for p in pathlib.Path(logdir).iterdir() if "tfevents" in p.name)


def read(path):
    """All events of one file; a torn record at the end, as a killed writer leaves it, ends the list."""
    events = []
    try:
        events.extend(tf.compat.v1.train.summary_iterator(str(path)))
    except tf.errors.DataLossError as error:
        assert "truncated record" in str(error), f"{path}: damaged: {error}"
    return events


def read_dir(logdir):
    """All events of a run, file after file."""
    return [event for path in files(logdir) for event in read(path)]


def session_logs(events, status):
    """The steps of the session log events of one status, in order."""
    return [e.step for e in events if e.HasField("session_log") and e.session_log.status == status]


def scalars(events):
    """{tag: [(step, value, wall time), ...]} of old-style scalars."""
    return _series(events, "simple_value", lambda value: value.simple_value)


def histograms(events):
    """{tag: [(step, HistogramProto, wall time), ...]}"""
    return _series(events, "histo", lambda value: value.histo)


def after_restarts(events):
    """What is left once every restart has dropped the points that the earlier sessions had at or beyond its step."""
    kept = []
    started = False
    for event in events:
        if event.HasField("session_log") and event.session_log.status == SessionLog.START:
            if started:
                kept = [e for e in kept if e.step < event.step]
            started = True
        kept.append(event)
    return kept


def _series(events, kind, content):
    series = {}
    for event in events:
        for value in event.summary.value:
            if value.WhichOneof("value") == kind:
                series.setdefault(value.tag, []).append((event.step, content(value), event.wall_time))
    return series
