package ckptfmt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// Verify reads everything and yields the name of each tensor or slice with its
// error, nil if it is intact. Tensors that share bytes are damage too. Damage
// to the index table, or the end of ctx, ends the iteration with the name "".
//
// Several goroutines read the files; they have ended when the iteration ends.
func (r *BundleReader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		stopped, stop := context.WithCancel(ctx)
		defer stop()
		// A verdict is put in line before its goroutine starts, so the line's
		// length bounds how many there are.
		line := make(chan chan verdictOf, runtime.GOMAXPROCS(0))
		var extents []extent // read after the line was closed
		broken := false      // the table itself, as was said already
		wg.Go(func() {
			defer close(line)
			extents = r.startVerdicts(stopped, &wg, line)
		})
		for next := range line {
			v := <-next
			if ctx.Err() != nil {
				break // what it says may be about ctx
			}
			broken = broken || v.name == "" && v.err != nil
			if !yield(v.name, v.err) {
				return
			}
		}
		if ctx.Err() != nil {
			yield("", ctx.Err())
			return
		}
		for name, err := range r.sharedBytes(extents) {
			if !yield(name, err) {
				return
			}
		}
		if err := r.table.Check(); err != nil && !broken {
			yield("", err)
		}
	}
}

type verdictOf struct {
	name string
	err  error
}

// extent is the place of a tensor's bytes.
type extent struct {
	shard       int32
	offset, end int64
	name        string
}

// startVerdicts starts a goroutine for each entry of the index, in order, and
// returns where their bytes are.
func (r *BundleReader) startVerdicts(ctx context.Context, wg *sync.WaitGroup, line chan<- chan verdictOf) []extent {
	var extents []extent
	listed := sliceLists{r: r}
	for e, err := range r.entries(nil) {
		name, badName := r.entryName(e.key)
		v := verdictOf{name, cmp.Or(err, badName)}
		if v.err == nil && isSliceKey(e.key) {
			v.err = listed.check(e.key)
		}
		next := make(chan verdictOf, 1)
		select {
		case <-ctx.Done():
			return nil
		case line <- next:
		}
		if v.err != nil {
			next <- v
			continue
		}
		if len(e.slices) == 0 && e.size > 0 {
			extents = append(extents, extent{e.shard, e.offset, e.offset + e.size, v.name})
		}
		entry := e.bundleEntry
		wg.Go(func() {
			v.err = r.verify(ctx, v.name, &entry)
			next <- v
		})
	}
	return extents
}

// entryName returns the name of the tensor under a key; of a slice also its
// text form.
func (r *BundleReader) entryName(key []byte) (string, error) {
	if !isSliceKey(key) {
		return string(key), nil
	}
	name, s, err := parseSliceKey(key)
	if err != nil {
		return string(key), r.corruptEntry(key, err)
	}
	return name + " " + s.String(), nil
}

// sliceLists checks that slices are listed by their tensors. Those of one
// tensor follow each other.
type sliceLists struct {
	r     *BundleReader
	name  string
	slice map[string]bool // of that tensor

	damaged bool // its entry, which is said of the tensor itself
}

func (l *sliceLists) check(key []byte) error {
	name, s, _ := parseSliceKey(key) // that of a bad one is an error before
	if l.slice == nil || name != l.name {
		l.name, l.slice = name, make(map[string]bool)
		e, err := l.r.lookup(name, []byte(name))
		l.damaged = err != nil && !errors.Is(err, ErrNotFound)
		for _, s := range e.slices {
			l.slice[s.String()] = true
		}
	}
	if !l.damaged && !l.slice[s.String()] {
		return l.r.corruptEntry(key, fmt.Errorf("%w: tensor %q does not list this slice, so nothing reads it", ErrSlices, name))
	}
	return nil
}

// verify checks the bytes of one entry, a piece at a time where it can.
func (r *BundleReader) verify(ctx context.Context, name string, e *bundleEntry) error {
	if len(e.slices) > 0 {
		return r.checkSlices(name, e)
	}
	if hasStrings(e.dtype) {
		_, err := r.read(name, e) // which always checks them
		return err
	}
	file, err := r.locate(name, e)
	if err != nil {
		return err
	}
	crc, err := sumAt(ctx, file, e.offset, e.size)
	if err != nil {
		return readError(file, name, e, err)
	}
	if err := e.checkSum(crc32c.Mask(crc)); err != nil {
		return corruptTensor(file, name, e, err)
	}
	return nil
}

// sharedBytes yields the tensors whose bytes are also another's.
func (r *BundleReader) sharedBytes(extents []extent) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		slices.SortFunc(extents, func(a, b extent) int {
			return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.offset, b.offset))
		})
		for i := 1; i < len(extents); i++ {
			a, b := extents[i-1], extents[i]
			if a.shard != b.shard || b.offset >= a.end {
				continue
			}
			err := &CorruptError{
				Name: layout.DataName(r.prefix, int(b.shard), r.NumShards()), Offset: b.offset, Part: fmt.Sprintf("tensor %q", b.name),
				Err: fmt.Errorf("it shares bytes with tensor %q", a.name),
			}
			if !yield(b.name, err) {
				return
			}
		}
	}
}
