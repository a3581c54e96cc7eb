package trial

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLoaded has a program that saves a model for each epoch, and in another folder what it
// continues from: that is what is to be looked after. So it is where it continues from the models.
func TestLoaded(t *testing.T) {
	if !keepsReads(t) {
		t.Skip("the file system does not keep when a file was read")
	}
	for from, want := range map[string]string{"state/last.pt": "last.pt", "models/model_?.pt": "model_*.pt"} {
		dir := t.TempDir()
		script := `mkdir -p models state
for f in ` + from + `; do n=$(cat "$f" 2>/dev/null || echo ${n:-0}); done
while [ $n -lt 500 ]; do
  n=$((n + 1))
  sleep 0.5
  echo $n >models/model_$n.pt
  echo $n >state/next && mv state/next state/last.pt
  echo "step $n loss 0.5"
done
`
		if err := os.WriteFile(filepath.Join(dir, "train.sh"), []byte(script), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := Run(t.Context(), Options{Command: []string{"sh", "train.sh"}, Dir: dir, Logdir: filepath.Join(dir, "logs/j"), Limit: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if f.Saved == nil || f.Saved.Pattern != want {
			t.Errorf("from %s: found %+v, want %s", from, f.Saved, want)
		}
	}
}

// keepsReads reports whether it shows that a file has been read.
func keepsReads(t *testing.T) bool {
	name := filepath.Join(t.TempDir(), "file")
	written := time.Now().Add(-time.Minute)
	if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, written, written); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return readAt(info).After(written)
}
