package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLoaded has a program that saves a model for each epoch, and in another folder, or with more
// than a model next to them, what it continues from: that is what is to be looked after. So are the
// models where it continues from them, or from a copy of the newest.
func TestLoaded(t *testing.T) {
	if !keepsReads(t) {
		t.Skip("the file system does not keep when a file was read")
	}
	for from, want := range map[string]string{
		"state/last.pt": "last.pt", "models/model_?.pt": "model_*.pt", "models/full/../latest.pt": "latest.pt", "models/latest.pt": "model_*.pt",
	} {
		more := ""
		if strings.Contains(from, "full") {
			more = strings.Repeat(" 0", 500)
		}
		dir := t.TempDir()
		script := `mkdir -p models/full state
for f in ` + from + `; do n=$(cut -d ' ' -f 1 "$f" 2>/dev/null || echo ${n:-0}); done
while [ $n -lt 500 ]; do
  n=$((n + 1))
  sleep 0.5
  echo $n >models/model_$n.pt
  echo $n >state/next && mv state/next state/last.pt
  echo $n` + more + ` >models/next && mv models/next models/latest.pt
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
