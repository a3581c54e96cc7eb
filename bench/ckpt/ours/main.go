// Ours saves, restores, opens, verifies, lists and copies checkpoints of
// generated tensors, and does the least that the machine can do for the same:
//
//	save, write             tensors in memory to files
//	generate                the checkpoint for those that follow
//	restore, open           its tensors in memory, or mapped
//	verify, crc             its checksums, or those of as much memory
//	copy, copy-bytes        the checkpoint, or its data file
//	generate-names, run     a checkpoint of many names, in each format; a command that lists it
//	generate-safetensors    the tensors in four files, with their SHA-256
//	convert                 the checkpoint to safetensors, or with -back from that
//	generate-files          the tensors in one file of each format
//	read-file, convert-file that file (-from EXT) in memory, or as one of another format (-as EXT)
//	verify-sums, sha        the SHA-256 of the four files, or that of as much memory
//
// Each prints one JSON object: what was done and how long it took.
package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// What is saved, besides as many large tensors as -large says.
const (
	largeBytes = 25 << 20
	smallBytes = 1 << 10
	smallCount = 2000
	saves      = 5
)

// notInstalled is the exit code of a program that lacks a library.
const notInstalled = 77

// args are the command line's.
type args struct {
	dir, to      string
	large, names int
	sync, mmap   bool
	back         bool
	from, as     string
	command      []string
}

var commands = map[string]func(*args) (*measure.Result, error){
	"save": save, "write": write, "generate": generate, "restore": restore, "open": open,
	"verify": verify, "crc": crc, "copy": copyCheckpoint, "copy-bytes": copyBytes,
	"generate-names": generateNames, "run": run,
	"generate-safetensors": generateSafetensors, "convert": convert,
	"generate-files": generateFiles, "read-file": readFile, "convert-file": convertFile, "verify-sums": verifySums, "sha": sha,
}

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		if missing := new(exec.ExitError); errors.As(err, &missing) && missing.ExitCode() == notInstalled {
			os.Exit(notInstalled)
		}
		os.Exit(1)
	}
}

func start(line []string) error {
	if len(line) == 0 || commands[line[0]] == nil {
		return fmt.Errorf("no such command: %q", line)
	}
	var a args
	flags := flag.NewFlagSet(line[0], flag.ContinueOnError)
	flags.StringVar(&a.dir, "dir", "", "where the files are")
	flags.StringVar(&a.to, "to", "", "where copies go")
	flags.IntVar(&a.large, "large", 40, "tensors of 25 MiB")
	flags.IntVar(&a.names, "names", 100000, "tensors to list")
	flags.BoolVar(&a.sync, "sync", false, "wait for the disk")
	flags.BoolVar(&a.mmap, "mmap", false, "map the data file, do not copy it")
	flags.BoolVar(&a.back, "back", false, "convert safetensors to a checkpoint")
	flags.StringVar(&a.from, "from", "", "extension of the file to read")
	flags.StringVar(&a.as, "as", "", "extension of the file to write")
	if err := flags.Parse(line[1:]); err != nil {
		return err
	}
	// The work is appended to the command that is run, too.
	a.command = flags.Args()
	r, err := commands[line[0]](&a)
	if err != nil || r == nil {
		return err
	}
	if r.CPUSeconds == 0 {
		r.CPUSeconds = seconds(measure.CPUTime())
	}
	return r.Print()
}

func (a *args) prefix() string { return filepath.Join(a.dir, "model.ckpt") }

// tensors returns what is saved: the elements of number i count up from i and
// begin again after 1021.
func (a *args) tensors() []ckptfmt.NamedTensor {
	var list []ckptfmt.NamedTensor
	for i := range a.large + smallCount {
		n := largeBytes / 4
		if i >= a.large {
			n = smallBytes / 4
		}
		values := make([]float32, n)
		for j := range values {
			values[j] = float32(j%1021 + i)
		}
		t, err := ckptfmt.FromValues([]int64{int64(n)}, values)
		if err != nil {
			panic(err) // the shape is that of the values
		}
		list = append(list, ckptfmt.NamedTensor{Name: fmt.Sprintf("model/layer_%05d/kernel", i), Tensor: t})
	}
	return list
}

// work says what tensors there are.
func work(tensors []ckptfmt.NamedTensor) string {
	tensors = slices.SortedFunc(slices.Values(tensors), func(a, b ckptfmt.NamedTensor) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	sum, size := uint32(0), 0
	for _, t := range tensors {
		sum = crc32.Update(sum, crc32.IEEETable, t.Tensor.Data)
		size += len(t.Tensor.Data)
	}
	return fmt.Sprintf("%d tensors, %d bytes, digest %08x", len(tensors), size, sum)
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func generate(a *args) (*measure.Result, error) {
	return nil, saveBundle(a.prefix(), a.tensors(), false)
}

// generateNames saves a checkpoint of many tensors, builds the command that lists it,
// and has that convert it to the other formats.
func generateNames(a *args) (*measure.Result, error) {
	w, err := ckptfmt.CreateBundle(a.prefix(), nil)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	value := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 8)}
	for i := range a.names {
		if err := w.Add(fmt.Sprintf("model/block_%03d/layer_%05d/kernel", i/1000, i), value); err != nil {
			return nil, err
		}
	}
	if err := w.Finish(); err != nil {
		return nil, err
	}
	ckpt := filepath.Join(a.dir, "ckpt")
	if err := build(ckpt); err != nil {
		return nil, err
	}
	for _, ext := range []string{".safetensors", ".npz", ".h5", ".pt"} {
		if out, err := exec.Command(ckpt, "convert", a.prefix(), filepath.Join(a.dir, "model"+ext)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil, nil
}
