// Package faults has tests that take a real file system away from under a
// training: power cuts of ext4 and XFS, and disks that are full. They need root
// and loop devices, so they run only when asked for:
//
//	go test ./bench/faults -powercuts 40 [-python PY] -v
//
// With an interpreter that has TensorFlow, its own Saver goes through the same
// power cuts.
//
// Another one sets the clock of a training, and of a trainerd that keeps a program, forth
// and back by a day all the time. It
// needs no root, but builds trainerd with a package time of its own, which takes
// minutes:
//
//	go test ./bench/faults -run Clock -clock -v
package faults
