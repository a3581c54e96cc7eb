package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/rewrite"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/crc32c"
)

func restore(a *args) (*measure.Result, error) {
	begin := time.Now()
	r, err := ckptfmt.OpenBundle(a.prefix(), &ckptfmt.ReaderOptions{Mmap: a.mmap})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all := r.LookupAll
	if a.mmap {
		all = r.ViewAll
	}
	tensors, err := all(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	return &measure.Result{Work: work(tensors), Seconds: seconds(took)}, nil
}

func open(a *args) (*measure.Result, error) {
	begin := time.Now()
	r, err := ckptfmt.OpenBundle(a.prefix(), &ckptfmt.ReaderOptions{Mmap: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tensors, err := all(r, r.View)
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	return &measure.Result{Work: work(tensors), Seconds: seconds(took)}, nil
}

// all reads the tensors of a checkpoint one by one.
func all(r ckptfmt.Reader, get func(name string) (*ckptfmt.Tensor, error)) ([]ckptfmt.NamedTensor, error) {
	var tensors []ckptfmt.NamedTensor
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, err
		}
		t, err := get(info.Name)
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, ckptfmt.NamedTensor{Name: info.Name, Tensor: t})
	}
	return tensors, nil
}

func checked(a *args) string {
	return fmt.Sprintf("%d tensors, %d bytes", a.large+smallCount, a.large*largeBytes+smallCount*smallBytes)
}

func verify(a *args) (*measure.Result, error) {
	begin := time.Now()
	r, err := ckptfmt.OpenBundle(a.prefix(), nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n := 0
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		n++
	}
	took := time.Since(begin)
	if n != a.large+smallCount {
		return nil, fmt.Errorf("%d tensors were verified", n)
	}
	return &measure.Result{Work: checked(a), Seconds: seconds(took)}, nil
}

// crc sums as much memory on all processors.
func crc(a *args) (*measure.Result, error) {
	tensors := a.tensors()
	begin := time.Now()
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for i := range n {
		wg.Go(func() {
			for j := i; j < len(tensors); j += n {
				crc32c.Value(tensors[j].Tensor.Data)
			}
		})
	}
	wg.Wait()
	return &measure.Result{Work: checked(a), Seconds: seconds(time.Since(begin))}, nil
}

const memoryLimit = 64 << 20

func copyCheckpoint(a *args) (*measure.Result, error) {
	return timedCopy(a, func() error {
		s, err := rewrite.Open(a.prefix())
		if err != nil {
			return err
		}
		defer s.Close()
		return rewrite.Write(context.Background(), s, filepath.Join(a.to, "copy"), nil)
	})
}

func copyBytes(a *args) (*measure.Result, error) {
	return timedCopy(a, func() error {
		in, err := os.Open(layout.DataName(a.prefix(), 0, 1))
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.Create(filepath.Join(a.to, "copy"))
		if err != nil {
			return err
		}
		defer out.Close()
		// Without the struct the system would share blocks instead.
		if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20)); err != nil {
			return err
		}
		return out.Sync()
	})
}

// timedCopy measures a copy and the most heap that it had.
func timedCopy(a *args, do func() error) (*measure.Result, error) {
	debug.SetMemoryLimit(memoryLimit)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- watchHeap(stop) }()
	begin := time.Now()
	err := do()
	took := time.Since(begin)
	close(stop)
	heap := <-peak
	if err != nil {
		return nil, err
	}
	return &measure.Result{Work: checked(a), Seconds: seconds(took), Metrics: map[string]float64{"heap_mib": float64(heap) / (1 << 20)}}, nil
}

func watchHeap(stop <-chan struct{}) (peak uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		metrics.Read(sample)
		peak = max(peak, sample[0].Value.Uint64())
		select {
		case <-stop:
			return peak
		case <-tick.C:
		}
	}
}

// run runs a command that lists a checkpoint into a file, and counts the names.
// A pipe would make the one who reads it part of the race.
func run(a *args) (*measure.Result, error) {
	i := slices.Index(a.command, "-names") // the work, which the driver appends
	if i < 0 {
		return nil, fmt.Errorf("no -names after the command %q", a.command)
	}
	list, err := os.Create(filepath.Join(a.dir, "list"))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	cmd := exec.Command(a.command[0], a.command[1:i]...)
	cmd.Stdout, cmd.Stderr = list, os.Stderr
	begin := time.Now()
	err = cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	out, err := os.ReadFile(list.Name())
	if err != nil {
		return nil, err
	}
	return &measure.Result{Work: fmt.Sprintf("%d names", bytes.Count(out, []byte("/kernel"))), Seconds: seconds(took), CPUSeconds: seconds(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())}, nil
}

func build(to string) error {
	cmd := exec.Command("go", "build", "-o", to, "github.com/trainerd/trainerd/cmd/ckpt")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
