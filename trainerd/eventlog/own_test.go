package eventlog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

func TestIsOwn(t *testing.T) {
	for base, want := range map[string]bool{
		"events.out.tfevents.1700000000.host.trainerd":                      true,
		"events.out.tfevents.1700000000.trainerd.trainerd":                  true,
		"events.out.tfevents.1700000000.trainerd":                           false, // of a program on the host "trainerd"
		"events.out.tfevents.1700000000.host":                               false,
		"events.out.tfevents.1700000000.host.7.0.v2":                        false,
		"events.out.tfevents.1700000000.host.restart-1700000000.trainerd":   true,
		"events.out.tfevents.1700000000.trainerd.restart-17000000.trainerd": true,
		"own.tfevents.restart-1700000000.trainerd":                          true,
		"model.trainerd": false,
	} {
		if IsOwn(base) != want {
			t.Errorf("%s: %v, want %v", base, !want, want)
		}
	}
}

// The files of a program stay out, also on a host whose name is "trainerd", and so do the
// marks of restarts.
func TestOwnFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run[1]")
	sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, OwnRun), 0o777))
	own := []string{"events.out.tfevents.1700000000.host.trainerd", filepath.Join(OwnRun, "events.out.tfevents.1700000001.host.trainerd")}
	others := []string{
		"events.out.tfevents.1700000000.trainerd", "events.out.tfevents.1700000000.host", "model.trainerd",
		"events.out.tfevents.1700000000.host.restart-1700000000.trainerd",
	}
	for _, name := range append(others, own...) {
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	for i := range own {
		own[i] = filepath.Join(dir, own[i])
	}
	if got := OwnFiles(dir); !slices.Equal(got, own) {
		t.Errorf("OwnFiles = %q, want %q", got, own)
	}
}
