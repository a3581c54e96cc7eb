package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeeps has what a job file says of how many checkpoints stay, by what the program does.
func TestKeeps(t *testing.T) {
	for source, tc := range map[string]struct {
		saved Saved
		want  string
	}{
		"torch.save(model, path)":          {Saved{Pattern: "ckpt-*.pt", Step: true}, "max_to_keep = 5   # only the newest"},
		"ModelCheckpoint(save_top_k=2)":    {Saved{Pattern: "*.ckpt", Step: true}, "max_to_keep = 0   # the program chooses its best"},
		"torch.save(model, 'last.pt')":     {Saved{Pattern: "last.pt"}, "max_to_keep = 0   # the program replaces it"},
		"torch.save(model, time.strftime)": {Saved{Pattern: "m_*-*-*.pt"}, "max_to_keep = 0   # their names have no step"},
	} {
		script := filepath.Join(t.TempDir(), "train.py")
		if err := os.WriteFile(script, []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
		f := &Findings{Options: Options{Command: []string{"python3", script}}, Saved: &tc.saved}
		text, err := f.Text("job", "job.toml", ".")
		if err != nil || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %v, no %q in\n%s", source, err, tc.want, text)
		}
	}
}
