package found

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// quickFile is the size in bytes of a file that always gets one.
const quickFile = 1 << 20

// summing is how the sums of a checkpoint are taken.
//
// The SHA-256 of a large checkpoint takes several times as long as all else that is done with it, on the
// processors with which the program trains. An archive, or a bundle, has checksums of its own, which are verified:
// where saves come in quick succession, only some of these get a SHA-256, too, as checkpoints of trainerd's own do.
type summing struct {
	manifest.Tees
	thrifty bool
	own     map[string]string // of files with checksums of their own, by name
}

// newSumming returns that of a candidate. One that the program overwrites has a copy, which is known by its sum.
func (s *Store) newSumming(c Checkpoint, due time.Time) *summing {
	return &summing{thrifty: c.Size >= manifest.QuickSums && !c.only && time.Now().Before(due)}
}

// begin is called before files are looked into.
func (x *summing) begin(root *os.Root, files []string) {
	x.own = integrity.OwnSums(root, files, quickFile)
	if !x.thrifty {
		return
	}
	for name := range x.own {
		x.Leave(root, name)
	}
}

// reader is what a look for damage reads a file through.
func (x *summing) reader(name string, f *os.File) io.ReaderAt {
	if x.thrifty && x.own[name] != "" {
		return f
	}
	return x.Reader(name, f)
}

// describe returns the entries of files for a record.
func (x *summing) describe(ctx context.Context, root *os.Root, files []string) ([]manifest.RecordFile, error) {
	all, err := x.Describe(ctx, root, files)
	for i := range all {
		all[i].Entries = x.own[all[i].Name]
	}
	return all, err
}

// sumsNext returns from when on there is time for the next sums.
func (s *Store) sumsNext(c Checkpoint, due time.Time) time.Time {
	if due.IsZero() && s.resumed { // a run that is killed often has many first saves
		return manifest.NextSumsUnmeasured(time.Now(), c.Size)
	}
	return due
}

// AddSums gives the newest checkpoint the sums that it lacks: it is the last of a run.
func (s *Store) AddSums(ctx context.Context) error {
	if len(s.known) == 0 {
		return nil
	}
	c := &s.known[len(s.known)-1]
	if c.record == nil || c.record.HasSums() {
		return nil
	}
	files, err := integrity.Files(s.root, c.files)
	if err != nil {
		return err
	}
	full, err := s.check(ctx, *c, files, nil, new(summing))
	if err != nil || !c.record.SameContent(full.Files) {
		return err
	}
	r := *c.record
	r.Files, r.Verified, r.Boot = full.Files, full.Verified, full.Boot
	return s.amend(c, r, nil)
}
