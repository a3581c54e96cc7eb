//go:build unix

package savedmodel

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestWriteMode writes into a folder whose group all that is in it is to have: a SavedModel
// has the mode of any new folder there.
func TestWriteMode(t *testing.T) {
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o770|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(parent, "other"), fs.ModePerm); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), filepath.Join(parent, "saved"), &tfpb.MetaGraphDef{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var modes []fs.FileMode
	for _, name := range []string{"other", "saved", "saved/variables"} {
		info, err := os.Stat(filepath.Join(parent, name))
		if err != nil {
			t.Fatal(err)
		}
		modes = append(modes, info.Mode())
	}
	if modes[1] != modes[0] || modes[2] != modes[0] {
		t.Errorf("modes are %v", modes)
	}
}
