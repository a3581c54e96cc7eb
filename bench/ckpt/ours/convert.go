package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/internal/parallel"
)

// sumFiles is how many files the tensors are spread over where their SHA-256 is taken:
// one file can only be summed by one processor.
const sumFiles = 4

func (a *args) safetensors(i int) string {
	return filepath.Join(a.dir, fmt.Sprintf("model-%d.safetensors", i))
}

// generateSafetensors writes the checkpoint, and its tensors to one file for convert and
// to several for the sums.
func generateSafetensors(a *args) (*measure.Result, error) {
	if _, err := generate(a); err != nil {
		return nil, err
	}
	if err := rewriteTo(a.prefix(), filepath.Join(a.dir, "model.safetensors"), nil); err != nil {
		return nil, err
	}
	list, err := os.Create(filepath.Join(a.dir, manifest.SumFiles[0]))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for i := range sumFiles {
		n := -1
		keep := func(string) bool { n++; return n%sumFiles == i }
		if err := rewriteTo(a.prefix(), a.safetensors(i), keep); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(a.safetensors(i))
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(list, "%x  %s\n", sha256.Sum256(b), filepath.Base(a.safetensors(i))); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func rewriteTo(from, to string, keep func(name string) bool) error {
	s, err := rewrite.Open(from)
	if err != nil {
		return err
	}
	defer s.Close()
	if keep != nil {
		if err := s.Keep(keep); err != nil {
			return err
		}
	}
	return rewrite.Write(context.Background(), s, to, nil)
}

func convert(a *args) (*measure.Result, error) {
	from, to := a.prefix(), filepath.Join(a.to, "copy.safetensors")
	if a.back {
		from, to = filepath.Join(a.dir, "model.safetensors"), filepath.Join(a.to, "copy")
	}
	return timedCopy(a, func() error { return rewriteTo(from, to, nil) })
}

// verifySums holds the files against their list, as `ckpt verify` does.
func verifySums(a *args) (*measure.Result, error) {
	begin := time.Now()
	var files []string
	for i := range sumFiles {
		files = append(files, a.safetensors(i))
	}
	sums, bad := new(manifest.SumFinder).Find(files)
	if len(sums) != sumFiles {
		return nil, fmt.Errorf("%d files have a sum: %w", len(sums), errors.Join(bad...))
	}
	failed := make([]error, len(sums))
	parallel.Each(context.Background(), len(sums), func(i int) { failed[i] = sums[i].Verify(context.Background()) })
	took := time.Since(begin)
	return &measure.Result{Work: checked(a), Seconds: seconds(took)}, errors.Join(failed...)
}

// sha sums as much memory on all processors.
func sha(a *args) (*measure.Result, error) {
	tensors := a.tensors()
	begin := time.Now()
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for i := range n {
		wg.Go(func() {
			sum := sha256.New()
			for j := i; j < len(tensors); j += n {
				sum.Write(tensors[j].Tensor.Data)
			}
		})
	}
	wg.Wait()
	return &measure.Result{Work: checked(a), Seconds: seconds(time.Since(begin))}, nil
}
