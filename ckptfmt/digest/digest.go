// Package digest computes hashes of tensors that depend only on names, types,
// shapes and elements, not on the file format, the number of files, the order
// in them or their compression. So a checkpoint and its conversions have the
// same hash, and two files with the same hash hold the same tensors.
//
// The hash of a tensor is the SHA-256 of a line of text and its elements:
//
//	float32 [4,3]\n                     type as TensorFlow prints it, shape without blanks
//	elements                            row-major, little-endian, one after the other
//
// An element of a complex type is its real part and its imaginary part; a bool,
// and a type narrower than a byte, takes one byte. Each element of a tensor of
// strings is its length as a uint64, little-endian, and its bytes.
//
// The hash of them all is the SHA-256 of, for each tensor in the order of the
// bytes of their names:
//
//	length of the name: uint64 LE | name | hash of the tensor: 32 bytes
//
// The object graph that tf.train.Checkpoint stores is about keys and is not
// included.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
)

// Size is the number of bytes of a hash.
const Size = sha256.Size

// Tensor is a tensor and its hash.
type Tensor struct {
	Info ckptfmt.TensorInfo
	Hash [Size]byte
}

// Tensors yields the tensors that take accepts, all if take is nil, and their
// hashes, ordered by name. An error with a name concerns only that tensor; one
// without ends the iteration. Several tensors are hashed at a time, by goroutines
// that have ended when the iteration ends; each holds a piece of one tensor. r must
// be safe for concurrent use.
func Tensors(ctx context.Context, r ckptfmt.Reader, take func(name string) bool) iter.Seq2[Tensor, error] {
	return func(yield func(Tensor, error) bool) {
		var list []result
		for info, err := range r.Tensors() {
			if err != nil && info.Name == "" {
				yield(Tensor{}, err)
				return
			}
			if info.Name != formats.ObjectGraph && (take == nil || take(info.Name)) {
				list = append(list, result{tensor: Tensor{Info: info}, err: err, done: make(chan struct{})})
			}
		}
		slices.SortStableFunc(list, func(a, b result) int { return strings.Compare(a.tensor.Info.Name, b.tensor.Info.Name) })
		ctx, stop := context.WithCancel(ctx)
		workers := start(ctx, r, list)
		defer workers.Wait()
		defer stop()
		for i := range list {
			select {
			case <-list[i].done:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				yield(Tensor{}, ctx.Err())
				return
			}
			if !yield(list[i].tensor, list[i].err) {
				return
			}
		}
	}
}

// result is the result of a worker; done is closed when it is there.
type result struct {
	tensor Tensor
	err    error
	done   chan struct{}
}

// start hashes the tensors of a list by one goroutine for each processor. They
// end when all is done or ctx is.
func start(ctx context.Context, r ckptfmt.Reader, list []result) *sync.WaitGroup {
	var workers sync.WaitGroup
	next := make(chan *result)
	workers.Go(func() {
		defer close(next)
		for i := range list {
			select {
			case next <- &list[i]:
			case <-ctx.Done():
				return
			}
		}
	})
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(func() {
			h, buf := sha256.New(), make([]byte, pieceBytes)
			for t := range next {
				if t.err == nil {
					h.Reset()
					t.err = t.tensor.sum(ctx, r, h, buf)
				}
				close(t.done)
			}
		})
	}
	return &workers
}

const pieceBytes = 256 << 10

// sum hashes a tensor.
func (t *Tensor) sum(ctx context.Context, r ckptfmt.Reader, h hash.Hash, buf []byte) error {
	io.WriteString(h, t.Info.TypeName()+" "+dtype.ShapeText(t.Info.Shape)+"\n")
	if dtype.Size(t.Info.DType) == 0 && t.Info.Foreign == "" {
		if err := sumStrings(r, t.Info.Name, h); err != nil {
			return err
		}
	} else if err := sumElements(ctx, r, t.Info.Name, h, buf); err != nil {
		return err
	}
	h.Sum(t.Hash[:0])
	return nil
}

func sumStrings(r ckptfmt.Reader, name string, h hash.Hash) error {
	t, err := r.Lookup(name)
	if err != nil {
		return err
	}
	for _, s := range t.Strings {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		h.Write(s)
	}
	return nil
}

// sumElements reads to the end: damage is reported there.
func sumElements(ctx context.Context, r ckptfmt.Reader, name string, h hash.Hash, buf []byte) error {
	t, err := r.OpenTensor(name)
	if err != nil {
		return err
	}
	for {
		n, err := t.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Whole combines the hashes of tensors, which must be added in the order of
// their names.
type Whole struct{ h hash.Hash }

// NewWhole returns the hash of no tensors.
func NewWhole() *Whole { return &Whole{sha256.New()} }

// Add adds a tensor.
func (w *Whole) Add(t *Tensor) {
	w.h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(t.Info.Name))))
	io.WriteString(w.h, t.Info.Name)
	w.h.Write(t.Hash[:])
}

// Sum returns the hash of all tensors that were added.
func (w *Whole) Sum() (sum [Size]byte) {
	w.h.Sum(sum[:0])
	return sum
}
