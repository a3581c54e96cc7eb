package tfevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// DefaultPoll is how often Follow looks for more.
const DefaultPoll = time.Second

// FollowOptions holds the choices of [Follow].
type FollowOptions struct {
	Poll    time.Duration // 0 means DefaultPoll
	Backlog int           // how many of the existing events: 0 means all, negative none
	MaxSize int64         // largest record accepted; 0 means DefaultMaxSize
}

// Follow returns the events of the files in dir, in the order of the files' names, and then those
// that are added, even in files that appear later, until ctx ends. dir is a directory of fsys, such
// as the Name of a [Run] in a file system from [DirFS]. It polls, and reads each file through one
// open handle, so it works on network file systems, which do not report changes. It waits for the
// rest of an incomplete record; damage is yielded as an error, and the events after it follow. dir
// need not exist yet.
func Follow(ctx context.Context, fsys fs.FS, dir string, o *FollowOptions) iter.Seq2[*tfpb.Event, error] {
	if o == nil {
		o = new(FollowOptions)
	}
	poll := o.Poll
	if poll <= 0 {
		poll = DefaultPoll
	}
	return func(yield func(*tfpb.Event, error) bool) {
		f := follower{fsys: fsys, dir: dir, o: o, readers: make(map[string]*Reader)}
		defer f.close()
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		if !f.backlog(ctx, o.Backlog, yield) {
			return
		}
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if !f.round(ctx, yield) {
				return
			}
		}
	}
}

type follower struct {
	fsys    fs.FS
	dir     string
	o       *FollowOptions
	names   []string // of the files that are open, sorted
	readers map[string]*Reader
	files   []fs.File
}

func (f *follower) close() {
	for _, file := range f.files {
		file.Close()
	}
}

type eventOrError struct {
	e   *tfpb.Event
	err error
}

// backlog is the first round; it yields only the last n results.
func (f *follower) backlog(ctx context.Context, n int, yield func(*tfpb.Event, error) bool) bool {
	if n == 0 {
		return f.round(ctx, yield)
	}
	var last []eventOrError
	f.round(ctx, func(e *tfpb.Event, err error) bool {
		if n > 0 {
			if len(last) == n {
				last = append(last[:0], last[1:]...)
			}
			last = append(last, eventOrError{e, err})
		}
		return true
	})
	for _, l := range last {
		if !yield(l.e, l.err) {
			return false
		}
	}
	return true
}

// round reads everything there is so far, and reports whether to continue.
func (f *follower) round(ctx context.Context, yield func(*tfpb.Event, error) bool) bool {
	if err := f.open(); err != nil && !yield(nil, err) {
		return false
	}
	for _, name := range f.names {
		for e, err := range f.readers[name].Events() {
			if ctx.Err() != nil {
				return false
			}
			var damage *tfrecord.CorruptError
			if errors.As(err, &damage) && damage.Torn() {
				continue
			}
			if !yield(e, err) {
				return false
			}
		}
	}
	return true
}

// open opens the files that have appeared. If one cannot be opened, the error names it, and the
// others are still read; one that is removed meanwhile is left out.
func (f *follower) open() error {
	entries, failed := fs.ReadDir(f.fsys, f.dir)
	for _, e := range entries {
		name := path.Join(f.dir, e.Name())
		if !IsEventsFile(name) || f.readers[name] != nil {
			continue
		}
		mode, err := entryMode(f.fsys, name, e)
		if err == nil && !holdsBytes(mode) {
			continue
		}
		file, err := f.fsys.Open(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				failed = cmp.Or(failed, err)
			}
			continue
		}
		r := NewReader(file)
		r.Records.Name, r.Records.MaxSize, r.Records.Resync = name, f.o.MaxSize, true
		f.files = append(f.files, file)
		f.readers[name] = r
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		return fmt.Errorf("tfevents: %w", failed)
	}
	return nil
}
