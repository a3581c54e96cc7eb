package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
)

func save(a *args) (*measure.Result, error) {
	return timedSaves(a, func(tensors []ckptfmt.NamedTensor) error { return saveBundle(a.prefix(), tensors, a.sync) })
}

func saveBundle(prefix string, tensors []ckptfmt.NamedTensor, sync bool) error {
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{NoSync: !sync})
	if err != nil {
		return err
	}
	defer w.Close()
	for _, t := range tensors {
		if err := w.Add(t.Name, t.Tensor); err != nil {
			return err
		}
	}
	return w.Finish()
}

// write writes the same bytes, and nothing else.
func write(a *args) (*measure.Result, error) {
	return timedSaves(a, func(tensors []ckptfmt.NamedTensor) error {
		f, err := os.Create(a.prefix())
		if err != nil {
			return err
		}
		defer f.Close()
		buf := bufio.NewWriterSize(f, 64<<10) // for the small ones
		for _, t := range tensors {
			if _, err := buf.Write(t.Tensor.Data); err != nil {
				return err
			}
		}
		if err := buf.Flush(); err != nil {
			return err
		}
		if a.sync {
			return f.Sync()
		}
		return nil
	})
}

// timedSaves gives the median time of several saves, and the memory that they
// took besides the tensors.
func timedSaves(a *args, do func([]ckptfmt.NamedTensor) error) (*measure.Result, error) {
	tensors := a.tensors()
	runtime.GC()
	before, err := memory("VmRSS")
	if err != nil {
		return nil, err
	}
	// The peak so far was that of making the tensors.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return nil, err
	}
	var times []time.Duration
	for range saves {
		if err := clearDir(a.dir); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := do(tensors); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
	peak, err := memory("VmHWM")
	if err != nil {
		return nil, err
	}
	slices.Sort(times)
	return &measure.Result{
		Work: work(tensors), Seconds: seconds(times[len(times)/2]),
		Metrics: map[string]float64{"extra_mib": max(0, peak-before)},
	}, nil
}

func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// memory returns a field of the process's status in MiB.
func memory(field string) (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		words := bytes.Fields(line)
		if len(words) == 3 && string(words[0]) == field+":" {
			kib, err := strconv.ParseFloat(string(words[1]), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("this system does not say %s", field)
}
