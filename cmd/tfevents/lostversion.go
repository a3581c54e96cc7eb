package main

import (
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// damagedCopy writes the copy of a damaged file. If damage has cost the version at the
// beginning, it writes one again: without it, TensorBoard's Python loader takes each step
// back for a restart, and drops points.
type damagedCopy struct {
	w        *tfrecord.Writer
	begun    bool
	lost     bool // what was at the beginning
	restored bool // the version
}

// damaged takes note of damage.
func (d *damagedCopy) damaged() { d.lost = d.lost || !d.begun }

// intact takes note of an intact record before it is written, or left out.
func (d *damagedCopy) intact(data []byte) error {
	if d.begun {
		return nil
	}
	d.begun = true
	var heads tfevents.HeadScanner
	head, err := heads.Scan(data)
	if err != nil || !d.lost || head.Version != "" {
		return nil // the caller knows what is no event
	}
	d.restored = true
	return d.w.Write(tfproto.Marshal(&tfpb.Event{WallTime: head.WallTime, What: &tfpb.Event_FileVersion{FileVersion: version2}}))
}
