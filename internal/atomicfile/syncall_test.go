package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestSyncAll(t *testing.T) {
	for _, n := range []int{0, 1, fewFiles, fewFiles + 1, 50} {
		dir := t.TempDir()
		var names []string
		for i := range n {
			names = append(names, filepath.Join(dir, fmt.Sprint(i)))
			if err := os.WriteFile(names[i], []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := SyncAll(names); err != nil {
			t.Errorf("%d files: %v", n, err)
		}
		if n == 0 {
			continue
		}
		if err := os.Remove(names[n-1]); err != nil {
			t.Fatal(err)
		}
		if err := SyncAll(names); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d files, one of them gone: %v", n, err)
		}
	}
}
