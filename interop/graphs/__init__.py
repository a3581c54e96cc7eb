"""Small TensorFlow 1 programs of many kinds, for comparing the embedded runtime with TensorFlow.

    python -m graphs DIR [NAME...]

runs them in TensorFlow and writes for each, under DIR/NAME/: graph.meta, program.json, and a tensor bundle record with
init/<variable>, feeds/step_%03d/<placeholder>, fetches/step_%03d/<key> and final/<variable>."""
