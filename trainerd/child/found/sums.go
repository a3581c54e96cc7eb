package found

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// quickFile is the size in bytes up to which a file always gets a SHA-256.
const quickFile = 1 << 20

// summing decides how the SHA-256 of a checkpoint's files are computed.
//
// The SHA-256 of a large checkpoint takes several times as long as everything else that is done
// with it, on the processors with which the program trains. An archive, or a bundle, has its own
// checksums, which are verified: if saves come in quick succession, only some of these get a
// SHA-256 as well, like trainerd's own checkpoints.
type summing struct {
	manifest.Tees
	thrifty bool
	own     map[string]string // of files with checksums of their own, by name
}

// newSumming returns the summing of a candidate. One that the program overwrites always gets a
// SHA-256, because it identifies the copy.
func (s *Store) newSumming(c Checkpoint, due time.Time) *summing {
	return &summing{thrifty: c.Size >= manifest.QuickSums && !c.only && time.Now().Before(due)}
}

// begin is called before files are checked for damage.
func (x *summing) begin(root *os.Root, files []string) {
	x.own = integrity.OwnSums(root, files, quickFile)
	if !x.thrifty {
		return
	}
	for name := range x.own {
		x.Leave(root, name)
	}
}

// reader returns the reader through which a check for damage reads a file.
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

// sumsNext returns the time from which the next checksums may be computed.
func (s *Store) sumsNext(c Checkpoint, due time.Time) time.Time {
	if due.IsZero() && s.resumed { // a run that is killed often has many first saves
		return manifest.NextSumsUnmeasured(time.Now(), c.Size)
	}
	return due
}

// AddSums adds the checksums that the newest checkpoint lacks, when it is the last of a run.
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
