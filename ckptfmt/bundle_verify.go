package ckptfmt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// Verify reads everything and yields the name of each tensor or slice with its
// error, nil if it is intact. Tensors that share bytes count as damage too. Damage
// to the index table, or the end of ctx, ends the iteration with the name "".
//
// Several goroutines read the files; they have ended when the iteration ends.
func (r *BundleReader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		stopped, stop := context.WithCancel(ctx)
		defer stop()
		// Verdicts are queued before their goroutine starts, so the queue's length bounds the number
		// of goroutines.
		line := make(chan chan []verdictOf, runtime.GOMAXPROCS(0))
		var extents []extent // read after the line was closed
		broken := false      // the table itself, as was said already
		wg.Go(func() {
			defer close(line)
			extents = r.startVerdicts(stopped, &wg, line)
		})
		for next := range line {
			for _, v := range <-next {
				if ctx.Err() != nil {
					break // what it says may be about ctx
				}
				broken = broken || v.name == "" && v.err != nil
				if !yield(v.name, v.err) {
					return
				}
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
	name  string
	entry bundleEntry
	err   error
}

// extent is the place of a tensor's bytes.
type extent struct {
	shard       int32
	offset, end int64
	name        string
}

// startVerdicts starts goroutines for the entries of the index, in order, and returns
// where their bytes are.
func (r *BundleReader) startVerdicts(ctx context.Context, wg *sync.WaitGroup, line chan<- chan []verdictOf) []extent {
	var extents []extent
	var list []verdictOf
	start := func() {
		next := make(chan []verdictOf, 1)
		select {
		case <-ctx.Done():
		case line <- next:
			own := list
			wg.Go(func() {
				r.verifyAll(ctx, own)
				next <- own
			})
		}
		list = nil
	}
	listed := sliceLists{r: r}
	for e, err := range r.entries(nil) {
		name, badName := r.entryName(e.key)
		v := verdictOf{name, e.bundleEntry, cmp.Or(err, badName)}
		if v.err == nil && isSliceKey(e.key) {
			v.err = listed.check(e.key)
		}
		if len(list) > 0 && !follows(list, &v) {
			start()
		}
		if ctx.Err() != nil {
			return nil
		}
		list = append(list, v)
		if v.err == nil && len(e.slices) == 0 && e.size > 0 {
			extents = append(extents, extent{e.shard, e.offset, e.offset + e.size, v.name})
		}
	}
	if len(list) > 0 {
		start()
	}
	return extents
}

// runLength is how many entries are verified at once.
const runLength = 1024

// follows reports whether an entry is verified together with those before it, because one piece
// holds all their bytes: for small tensors, a system call and a goroutine each would take longer
// than the checksum.
func follows(list []verdictOf, v *verdictOf) bool {
	first, last := &list[0], &list[len(list)-1]
	return len(list) < runLength && first.isPlain() && v.isPlain() && v.entry.shard == first.entry.shard &&
		v.entry.offset >= last.entry.offset+last.entry.size && v.entry.size <= sumPiece-(v.entry.offset-first.entry.offset)
}

// isPlain reports whether an entry's checksum is simply that of its bytes.
func (v *verdictOf) isPlain() bool {
	return v.err == nil && len(v.entry.slices) == 0 && !hasStrings(v.entry.dtype)
}

// verifyAll gives each of a list its error.
func (r *BundleReader) verifyAll(ctx context.Context, list []verdictOf) {
	if len(list) > 1 && r.verifyRun(list) {
		return
	}
	for i := range list {
		if v := &list[i]; v.err == nil {
			v.err = r.verify(ctx, v.name, &v.entry)
		}
	}
}

// verifyRun verifies entries whose bytes are in one piece. It returns false if the file does not
// have all of it: then each entry is verified alone.
func (r *BundleReader) verifyRun(list []verdictOf) bool {
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	first, last := &list[0].entry, &list[len(list)-1].entry
	file, err := r.shard(int(first.shard))
	if err != nil {
		for i := range list {
			list[i].err = err
		}
		return true
	}
	b := buf[:last.offset+last.size-first.offset]
	failed := readFullAt(file, b, first.offset)
	if errors.Is(failed, io.ErrUnexpectedEOF) {
		return false
	}
	for i := range list {
		v := &list[i]
		e := &v.entry
		if failed != nil {
			v.err = readError(file, v.name, e, failed)
		} else if err := e.checkSum(crc32c.Mask(crc32c.Value(b[e.offset-first.offset:][:e.size]))); err != nil {
			v.err = corruptTensor(file, v.name, e, err)
		}
	}
	return true
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
	if name != l.name {
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

// sharedBytes yields the tensors that share bytes with another tensor.
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
