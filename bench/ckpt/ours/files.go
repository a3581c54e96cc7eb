package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt/formats"
)

// model is the file of other formats that generate-files writes.
func (a *args) model(ext string) string { return filepath.Join(a.dir, "model"+ext) }

// generateFiles writes the checkpoint, and its tensors to one file of each format.
func generateFiles(a *args) (*measure.Result, error) {
	if _, err := generate(a); err != nil {
		return nil, err
	}
	for _, ext := range []string{".safetensors", ".h5", ".pt"} {
		if err := rewriteTo(a.prefix(), a.model(ext), nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// readFile reads all tensors of a file into memory, as the first thing of its process.
func readFile(a *args) (*measure.Result, error) {
	begin := time.Now()
	f, err := formats.Find(a.model(a.from))
	if err != nil {
		return nil, err
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tensors, err := all(r, r.Lookup)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	return &measure.Result{Work: work(tensors), Seconds: seconds(took)}, nil
}

// convertFile writes the tensors of a file to one of another format, durably.
func convertFile(a *args) (*measure.Result, error) {
	to := filepath.Join(a.to, "copy"+a.as)
	r, err := timedCopy(a, func() error { return rewriteTo(a.model(a.from), to, nil) })
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(to); err != nil {
		return nil, err
	}
	return r, nil
}
