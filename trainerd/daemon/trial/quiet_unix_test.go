//go:build unix

package trial

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestQuietEnd has a program that saves over its only checkpoint as it reports. It is not ended
// before it has written the file, neither when the time is over nor at the first report of the
// other start.
func TestQuietEnd(t *testing.T) {
	dir := t.TempDir()
	const script = `n=$(cat ckpt.pt 2>/dev/null || echo 0)
n=$((n + 1))
echo $n >next
: >ckpt.pt
echo "step $n loss 0.5"
sleep 2
cat next >ckpt.pt
exec sleep 1000
`
	if err := os.WriteFile(filepath.Join(dir, "train.sh"), []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Run(t.Context(), Options{Command: []string{"sh", "train.sh"}, Dir: dir, Logdir: filepath.Join(dir, "logs/j"), Limit: time.Second / 2})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "ckpt.pt")); string(b) != "2\n" || f.Saved == nil || f.Again == nil {
		t.Errorf("the checkpoint has %q (%v), want that of the other start; found %+v", b, err, f)
	}
}
