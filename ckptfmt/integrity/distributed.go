package integrity

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

var shardName = lazyregexp.New(`__\d+_\d+\.distcp`)

// checkDistributed looks for what torch.distributed.checkpoint writes last, and
// for the files that it names.
func (x *checker) checkDistributed(dir string, own, _ []string) error {
	if !slices.Contains(own, ".metadata") {
		if slices.ContainsFunc(own, func(name string) bool { return path.Ext(name) == ".distcp" }) {
			return errors.New(".metadata is missing, which is written last")
		}
		return nil
	}
	b, err := x.read(path.Join(dir, ".metadata"))
	if err != nil {
		return err
	}
	for _, name := range shardName().FindAll(b, -1) {
		if !slices.Contains(own, string(name)) {
			return fmt.Errorf("%s is missing, which .metadata names", name)
		}
	}
	return x.verifyShards(filepath.Join(x.root.Name(), filepath.FromSlash(dir)))
}

// verifyShards reads all that torch.distributed.checkpoint has written into a folder. What this reader does not
// know, such as the type of a tensor, says nothing about the rest.
func (x *checker) verifyShards(dir string) error {
	r, err := dcp.Open(dir)
	if err != nil {
		return cmp.Or(harm(err), x.ctx.Err())
	}
	for _, err := range r.Verify(x.ctx) {
		if err := harm(err); err != nil {
			return err
		}
	}
	return x.ctx.Err()
}

// harm returns an error that says of files that they are damaged, or cannot be read, and nil for another.
func harm(err error) error {
	if _, damaged := errors.AsType[*ckptfmt.CorruptError](err); damaged || ckptdir.IsUnreadable(err) {
		return err
	}
	return nil
}
