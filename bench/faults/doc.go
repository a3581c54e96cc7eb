// Package faults has tests that take a real file system away from under a
// training: power cuts of ext4 and XFS, and disks that are full. They need root
// and loop devices, so they run only when asked for:
//
//	go test ./bench/faults -powercuts 40 [-python PY] -v
//
// With an interpreter that has TensorFlow, its own Saver goes through the same
// power cuts.
package faults
