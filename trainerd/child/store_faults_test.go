//go:build unix

package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestCopyIsBroughtBack has a damaged checkpoint that the program overwrites, whose copy is
// intact, or damaged too: then neither is given to the program, and no record is left.
func TestCopyIsBroughtBack(t *testing.T) {
	const name, done, failed = "last.safetensors", "brought back the last verified copy", "cannot bring back the copy"
	for _, intact := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			given := ""
			sv, log := simulate(t, func(p *simProgram) int {
				given = p.variable("TRAINERD_CHECKPOINT")
				return 0
			})
			sv.Checkpoints = "last*"
			file := filepath.Join(sv.Logdir, name)
			childtest.Write(t, file, childtest.Tensors())
			openStore(t, sv.Logdir, "last*").Refresh(true)
			copies, err := filepath.Glob(filepath.Join(sv.Logdir, found.CopiesDir, "*", name))
			if err != nil || len(copies) != 1 {
				t.Fatal(copies, err)
			}
			want := file
			if childtest.Write(t, file, "x"); !intact {
				childtest.Write(t, copies[0], "x")
				want = ""
			}
			if _, err := sv.Run(t.Context()); err != nil || given != want {
				t.Errorf("Run = %v; the program was given %q, want %q", err, given, want)
			}
			if strings.Contains(log.String(), done) != intact || strings.Contains(log.String(), failed) == intact {
				t.Errorf("intact: %v; log:\n%s", intact, log)
			}
			if records, bad := manifest.Records(sv.Logdir); (len(records) == 1) != intact || bad != nil {
				t.Errorf("intact: %v; records %v, %v", intact, records, bad)
			}
		})
	}
}

// TestDiskTakesCopyLater has a disk that refuses to sync the logdir for an hour, just after the
// program has overwritten its only checkpoint, and a program that fails then: it is not started
// from the beginning, but from the copy, once the disk takes that.
func TestDiskTakesCopyLater(t *testing.T) {
	const name = "last.safetensors"
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		full, given := time.Time{}, ""
		save := func(text string) {
			file := filepath.Join(sv.Logdir, name)
			childtest.Write(t, file, text)
			childtest.Must(t, os.Chtimes(file, time.Now(), time.Now()))
		}
		sv, log := simulate(t, func(p *simProgram) int {
			if given = p.variable("TRAINERD_CHECKPOINT"); given != "" {
				return 0
			}
			p.say("step=1")
			save(childtest.Tensors())
			p.sleep(10 * time.Minute)
			full = time.Now()
			p.say("step=2")
			save(childtest.Flip(childtest.Tensors(), len(childtest.Tensors())-1))
			p.sleep(10 * time.Minute)
			return 1
		})
		sv.Checkpoints = name
		picky(sv, func(op, below string) bool {
			return op == "sync" && below == "." && !full.IsZero() && time.Since(full) < time.Hour
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 || time.Since(full) < time.Hour || given == "" {
			t.Errorf("Run = %+v, %v; it was given %q\n%s", exit, err, given, log)
		}
	})
}
