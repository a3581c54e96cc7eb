package data

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/queue"
)

var readerOps = exec.OpTable{
	"TFRecordReaderV2":              {Build: buildReader(openRecords)},
	"TextLineReaderV2":              {Build: buildReader(openLines)},
	"WholeFileReaderV2":             {Build: buildReader(openWhole)},
	"IdentityReaderV2":              {Build: buildReader(openIdentity)},
	"ReaderReadV2":                  {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildRead},
	"ReaderReadUpToV2":              {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildReadUpTo},
	"ReaderNumRecordsProducedV2":    {Flags: exec.Stateful | exec.Blocking, Build: readerCount(func(r *reader) int { return r.records })},
	"ReaderNumWorkUnitsCompletedV2": {Flags: exec.Stateful | exec.Blocking, Build: readerCount(func(r *reader) int { return r.completed })},
	"ReaderResetV2":                 {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: exec.WithoutAttrs(resetReader)},
}

// TensorFlow cannot run the first form of this reader.
var fixedReaderOps = exec.OpTable{
	"FixedLengthRecordReaderV2": {Build: buildReader(openFixed)},
}

// reader turns work items, mostly file names from a queue, into records. One
// call reads at a time.
type reader struct {
	name      string
	turn      chan struct{}
	open      func(path, work string) (recordSource, error)
	work      string
	source    recordSource // nil between work items
	records   int
	completed int
	unread    []record // given out to runs that were cancelled, to come first
	pending   []byte   // the state to continue from
	log       *slog.Logger
}

// record is what a reader gives.
type record struct{ key, value []byte }

// recordSource reads the records of one work item; io.EOF ends it.
type recordSource interface {
	// next returns a record, which is valid until the next call.
	next() (value []byte, err error)
	// key returns the name of the last record.
	key() string
	// place says which record is next; moveTo, on a source that has just been
	// opened, continues there.
	place() filePlace
	moveTo(filePlace) error
	io.Closer
}

// filePlace is a position in a file: how many records came before, and how many
// bytes, as far as a source knows them.
type filePlace struct {
	record int
	offset int64
}

// pass moves a source to a place by reading up to it.
func pass(s recordSource, to filePlace) error {
	for s.place() != to {
		if s.place().record > to.record {
			return fmt.Errorf("has no record at byte %d any more", to.offset)
		}
		if _, err := s.next(); err != nil {
			return fmt.Errorf("is shorter than it was: %w", err)
		}
	}
	return nil
}

// opener parses a reader's attributes and returns what opens its sources.
type opener func(b *exec.OpConstruction) func(path, work string) (recordSource, error)

func buildReader(o opener) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		open := o(b)
		if b.Err() != nil {
			return nil, b.Err()
		}
		r := b.Resource(exec.KindReader, func(name string) any {
			r := &reader{name: name, turn: make(chan struct{}, 1), open: open}
			r.turn <- struct{}{}
			return r
		})
		return exec.HandleKernel(r), nil
	}
}

// Close closes the file that the reader has open, unless a call is reading: then it
// ends with it.
func (r *reader) Close() error {
	select {
	case <-r.turn:
	default:
		return nil
	}
	defer func() { r.turn <- struct{}{} }()
	if r.source == nil {
		return nil
	}
	err := r.source.Close()
	r.source = nil
	return err
}

func readerOf(c *exec.KernelContext) (*reader, error) {
	r, ok := c.In(0).Value.(*reader)
	if !ok {
		return nil, c.Invalid("input 0 is not a reader")
	}
	return r, nil
}

// read returns the next record, taking work from the queue as needed. The
// caller has the reader's turn.
func (r *reader) read(c *exec.KernelContext, q *queue.Queue) (key string, value []byte, err error) {
	if r.pending != nil {
		r.resume(c)
	}
	if len(r.unread) > 0 {
		first := r.unread[0]
		r.unread = r.unread[1:]
		return string(first.key), first.value, nil
	}
	for {
		if r.source == nil {
			if err := r.begin(c, q); err != nil {
				return "", nil, err
			}
		}
		key, value, err := r.more(c)
		if err != io.EOF {
			return key, value, err
		}
	}
}

// more returns the next record of the current work item. At its end it closes
// it and returns io.EOF.
func (r *reader) more(c *exec.KernelContext) (key string, value []byte, err error) {
	value, err = r.source.next()
	if err == nil {
		key = r.source.key()
		r.records++
		if _, ok := r.source.(*single); ok { // nothing to look for after it
			r.source = nil
			r.completed++
		}
		return key, value, nil
	}
	r.source.Close()
	r.source = nil
	if err != io.EOF {
		return "", nil, readError(c, err)
	}
	r.completed++
	return "", nil, io.EOF
}

// readError names what went wrong in a file.
func readError(c *exec.KernelContext, err error) error {
	var corrupt *tfrecord.CorruptError
	if errors.Is(err, tfrecord.ErrTooLarge) {
		return c.Errorf(tfpb.Code_DATA_LOSS, "%v: half of what the session may hold in memory, and at most 1 GiB", err)
	}
	if errors.As(err, &corrupt) {
		return c.Errorf(tfpb.Code_DATA_LOSS, "%v", err)
	}
	return c.FileError(err)
}

// begin opens the next work item.
func (r *reader) begin(c *exec.KernelContext, q *queue.Queue) error {
	if len(q.Types) != 1 || q.Types[0] != exec.String {
		return c.Invalid("queue %q does not hold single strings", q.Name)
	}
	items, err := q.Take(c, 1, false)
	if err != nil {
		return err
	}
	if items[0][0].NumElements() != 1 {
		return c.Invalid("queue %q holds %s, not single strings", q.Name, items[0][0].Describe())
	}
	r.work = string(items[0][0].Strings[0])
	path, err := c.ResolvePath(r.work)
	if err == nil {
		r.source, err = r.open(path, r.work)
	}
	if err != nil {
		r.source = nil
		return c.FileError(err)
	}
	return nil
}

// workQueue returns input 1.
func workQueue(c *exec.KernelContext) (*queue.Queue, error) {
	q, ok := c.In(1).Value.(*queue.Queue)
	if !ok {
		return nil, c.Invalid("input 1 is not a queue")
	}
	return q, nil
}

func buildRead(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		keys, values, err := readRecords(c, 1)
		if err != nil {
			return err
		}
		c.Out(0, exec.String).Strings[0] = keys[0]
		c.Out(1, exec.String).Strings[0] = values[0]
		return nil
	}, nil
}

func buildReadUpTo(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		n, err := c.IntScalar(2, "the number of records")
		if err != nil {
			return err
		}
		if n < 1 {
			return c.Invalid("%d records asked for", n)
		}
		keys, values, err := readRecords(c, n)
		if err != nil {
			return err
		}
		copy(c.Out(0, exec.String, len(keys)).Strings, keys)
		copy(c.Out(1, exec.String, len(values)).Strings, values)
		return nil
	}, nil
}

// readRecords reads one record, and up to n as long as the work item lasts.
func readRecords(c *exec.KernelContext, n int) (keys, values [][]byte, err error) {
	r, err := readerOf(c)
	if err != nil {
		return nil, nil, err
	}
	q, err := workQueue(c)
	if err != nil {
		return nil, nil, err
	}
	back, err := c.AcquireToken(r.turn)
	if err != nil {
		return nil, nil, err
	}
	defer back()
	defer func() {
		if err == nil {
			c.Take(&takenRecords{r, recordsOf(keys, values)})
		}
	}()
	key, value, err := r.read(c, q)
	for err == nil {
		keys = append(keys, []byte(key))
		values = append(values, bytes.Clone(value))
		if len(keys) == n {
			break
		}
		if r.source == nil {
			break // what was read before the restore has come; the rest is for the next call
		}
		key, value, err = r.more(c)
	}
	if err != nil && len(keys) == 0 {
		return nil, nil, err
	}
	return keys, values, nil
}

// takenRecords are records that a run has taken.
type takenRecords struct {
	reader  *reader
	records []record
}

func (t *takenRecords) GiveBack() {
	<-t.reader.turn
	t.reader.unread = append(t.records, t.reader.unread...)
	t.reader.turn <- struct{}{}
}

func readerCount(f func(*reader) int) func(*exec.OpConstruction) (exec.Kernel, error) {
	return exec.WithoutAttrs(func(c *exec.KernelContext) error {
		r, err := readerOf(c)
		if err != nil {
			return err
		}
		back, err := c.AcquireToken(r.turn)
		if err != nil {
			return err
		}
		defer back()
		exec.Elems[int64](c.Out(0, exec.Int64))[0] = int64(f(r))
		return nil
	})
}

func resetReader(c *exec.KernelContext) error {
	r, err := readerOf(c)
	if err != nil {
		return err
	}
	back, err := c.AcquireToken(r.turn)
	if err != nil {
		return err
	}
	defer back()
	if r.source != nil {
		r.source.Close()
	}
	r.source, r.records, r.completed, r.unread, r.pending = nil, 0, 0, nil, nil
	return nil
}

func recordsOf(keys, values [][]byte) []record {
	list := make([]record, len(keys))
	for i := range list {
		list[i] = record{keys[i], values[i]}
	}
	return list
}
