package hdf5

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// TestShorterWhileRead has a file that is mapped, and that another program makes shorter while a
// group of it is walked: an error from each goroutine, and no end of the process.
func TestShorterWhileRead(t *testing.T) {
	var names []string
	for i := range 8000 {
		names = append(names, fmt.Sprintf("top/w%05d/inner", i))
	}
	name := filepath.Join(t.TempDir(), "shorter.h5")
	if err := os.WriteFile(name, written(t, names, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := openfile.Open(name, func(from io.ReaderAt, size int64, name string) (*Reader, error) {
		if openfile.View(from, 0, 1) == nil {
			t.Skip("files are not mapped here")
		}
		s := &store{pager: &pager{from: from, size: size}, name: name}
		root, err := s.superblock()
		if err != nil {
			return nil, err
		}
		found := newTree(s, 2)
		top := membersAt(t, found, root)
		links, err := found.s.symbols(nil, top.nodes[0], top.names)
		if err != nil {
			return nil, err
		}
		g := membersAt(t, found, links[0].at)
		if err := os.Truncate(name, 1<<10); err != nil {
			return nil, err
		}
		return nil, found.walkApart(g, []int64{root}, len(g.nodes))
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// membersAt returns what the group at an address has.
func membersAt(t *testing.T, found *tree, at int64) members {
	t.Helper()
	list, err := found.s.walked(at)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := found.members(list)
	if err != nil || len(g.nodes) == 0 {
		t.Fatalf("%d nodes, %v", len(g.nodes), err)
	}
	return g
}
