package trial

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTidy checks that the logdir of a trial goes if the job gets another one, but neither one
// that was there before nor one with something of the program's.
func TestTidy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before bool
		saved  string // the logdir of the job
		more   string // another file
		stays  bool
	}{
		{"elsewhere", false, "out", "", false},
		{"the job's", false, "logs/train", "", true},
		{"there before", true, "out", "", true},
		{"the program's", false, "out", "events.out.tfevents.1.host", true},
	} {
		base := t.TempDir()
		logdir := filepath.Join(base, "logs", "train")
		if tc.before {
			if err := os.MkdirAll(logdir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		made := missing(logdir)
		if err := os.MkdirAll(filepath.Join(logdir, "trainerd.manifests"), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"trainerd.lock", "run-report.md", "events.out.tfevents.1.host.trainerd", tc.more} {
			if err := os.WriteFile(filepath.Join(logdir, name), nil, 0o666); err != nil && name != "" {
				t.Fatal(err)
			}
		}
		f := &Findings{Options: Options{Logdir: logdir}, Saved: &Saved{Logdir: filepath.Join(base, tc.saved)}}
		f.tidy(made)
		_, err := os.Stat(filepath.Join(base, "logs"))
		if stays := err == nil; stays != tc.stays {
			t.Errorf("%s: it stays: %v", tc.name, stays)
		}
	}
}
