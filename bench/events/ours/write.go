package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/tfevents"
)

const tag = "train/loss"

func written(n int) string { return fmt.Sprintf("%d scalars", n) }

// write adds n scalars through the public writer, with its defaults, and closes
// it.
func write(ctx context.Context, dir string, n int, clock bool) (*measure.Result, error) {
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Sync: tfevents.SyncNever})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	watch := measure.Start()
	if clock {
		err = addNow(ctx, w, n)
	} else {
		err = addGiven(ctx, w, n)
	}
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return watch.Result(written(n)), nil
}

func addNow(ctx context.Context, w *tfevents.FileWriter, n int) error {
	for i := range n {
		if err := w.AddScalar(ctx, tag, float64(i)/2, int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func addGiven(ctx context.Context, w *tfevents.FileWriter, n int) error {
	for i := range n {
		if err := w.AddScalarAt(ctx, start, tag, float64(i)/2, int64(i)); err != nil {
			return err
		}
	}
	return nil
}

// latency measures each single call.
func latency(ctx context.Context, dir string, n int) (*measure.Result, error) {
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Sync: tfevents.SyncNever})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	watch := measure.Start()
	took := make([]time.Duration, n)
	for i := range n {
		begin := time.Now()
		err := w.AddScalarAt(ctx, start, tag, float64(i)/2, int64(i))
		took[i] = time.Since(begin)
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	r := watch.Result(written(n))
	slices.Sort(took)
	r.Metrics["p50_ns"] = float64(took[n/2])
	r.Metrics["p99_ns"] = float64(took[n-n/100-1])
	return r, err
}

// frame does the least that writing a file of scalars takes: one goroutine, no
// lock, nothing looked at.
func frame(dir string, n int) (*measure.Result, error) {
	f, err := os.Create(filepath.Join(dir, "frames"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	watch := measure.Start()
	w := bufio.NewWriterSize(f, 64<<10)
	table := crc32.MakeTable(crc32.Castagnoli)
	masked := func(b []byte) uint32 { return bits.RotateLeft32(crc32.Checksum(b, table), -15) + 0xa282ead8 }
	record := append(make([]byte, 12), 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x10)
	le := binary.LittleEndian
	for i := range n {
		le.PutUint64(record[13:], math.Float64bits(1.5e9+float64(i)))
		b := binary.AppendUvarint(record, uint64(i))
		b = append(b, 0x2a, byte(9+len(tag)), 0x0a, byte(7+len(tag)), 0x0a, byte(len(tag)))
		b = append(b, tag...)
		b = le.AppendUint32(append(b, 0x15), math.Float32bits(float32(i)/2))
		le.PutUint64(b, uint64(len(b)-12))
		le.PutUint32(b[8:], masked(b[:8]))
		if _, err := w.Write(le.AppendUint32(b, masked(b[12:]))); err != nil {
			return nil, err
		}
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return watch.Result(written(n)), nil
}

// freshPause is the time between two points whose age is measured.
const freshPause = 100 * time.Millisecond

// fresh adds a scalar every freshPause, and prints its step, until it is killed.
func fresh(ctx context.Context, dir string) error {
	w, err := tfevents.NewFileWriter(dir, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	for step := int64(0); ; step++ {
		if err := w.AddScalar(ctx, "train/loss", float64(step)/2, step); err != nil {
			return err
		}
		fmt.Println(step)
		time.Sleep(freshPause)
	}
}
