package tfevents

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestDirFSOldNames reads a directory whose name is Latin-1.
func TestDirFSOldNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems refuse such names")
	}
	dir := t.TempDir()
	run := filepath.Join(dir, "caf\xe9")
	if err := os.Mkdir(run, 0o777); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(run, "a.tfevents"), eventsFile(t, losses(1, 1, 5)...).Data, 0o666); err != nil {
		t.Fatal(err)
	}
	runs, err := FindRuns(DirFS(dir), ".")
	if err != nil || len(runs) != 1 || runs[0].Name != "caf\uFFFD" {
		t.Fatalf("%+q, %v", runs, err)
	}
	if x := ReadRun(DirFS(dir), runs[0], nil); x.Lookup("loss").Len() != 5 || len(x.Damage) > 0 {
		t.Errorf("%d points, damage %v", x.Lookup("loss").Len(), x.Damage)
	}
}
