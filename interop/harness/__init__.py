"""What the interop tests share: running commands, TensorBoard, Chromium and TensorFlow's own readers."""
