package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// The disk fails, and stays so: what was there before is found by a restart on a disk
// that works again, and then everything works.
func TestDiskFailsForLong(t *testing.T) {
	actions := map[string]func(s *Saver, prefix string) error{
		"save": func(s *Saver, prefix string) error {
			_, err := s.Save(t.Context(), twoVariables(2), filepath.Join(filepath.Dir(prefix), "m"), 9)
			return err
		},
		"save under the same name": func(s *Saver, prefix string) error {
			_, err := s.Save(t.Context(), twoVariables(2), filepath.Join(filepath.Dir(prefix), "m"), 4)
			return err
		},
		"keep the previous": keep,
		"give its name back": func(s *Saver, prefix string) error {
			if s.Reinstate(previousName(prefix)) == prefix {
				return nil
			}
			return faultfs.ErrInjected
		},
	}
	for name, kind := range savers() {
		for what, action := range actions {
			t.Run(name+", "+what, func(t *testing.T) {
				for n := 1; ; n++ {
					dir := sessiontest.MemoryDir(t)
					s := &Saver{Shards: kind.Shards, Format: kind.Format}
					prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
					if what == "give its name back" {
						sessiontest.MustNoErr(t, overwriting(s, prefix))
					}
					log, lines := sessiontest.NewLog()
					fsys := faultfs.NewFault(faultfs.Fault{At: n, Kill: true})
					broken := &Saver{Shards: kind.Shards, Format: kind.Format, FS: fsys, Logger: log}
					err := action(broken, prefix)
					if fsys.Ops() < n {
						sessiontest.MustNoErr(t, err)
						return
					}
					if err == nil && lines.String() == "" {
						t.Errorf("operation %d fails, and nothing is said", n)
					}
					found := restoreFirst(t, twoVariables(0), dir, "m")
					if found == "" {
						t.Errorf("operation %d fails: no checkpoint is found in %v", n, sessiontest.Files(t, dir, "*"))
					}
					again := &Saver{Shards: kind.Shards, Format: kind.Format}
					again.Reinstate(found)
					save(t, again, twoVariables(3), filepath.Join(dir, "m"), 9)
					sess := twoVariables(0)
					if got := restoreFirst(t, sess, dir, "m"); got == "" || first(t, sess.Get("v")) != 3 {
						t.Errorf("operation %d fails: after the next save %q is found", n, got)
					}
				}
			})
		}
	}
}

// keep gives the files of a checkpoint second names, twice, as after a crash.
func keep(s *Saver, prefix string) error {
	once := func() error { return s.keepPrevious(prefix) }
	if name := unsharded(prefix); name != prefix {
		once = func() error { return s.keepPreviousShards(name, s.Shards) }
	}
	return errors.Join(once(), once())
}

// A Saver knows its own format by the files.
func TestOwnFormat(t *testing.T) {
	dir := t.TempDir()
	v2 := save(t, &Saver{}, twoVariables(1), filepath.Join(dir, "m"), 1)
	v1 := save(t, &Saver{Format: FormatV1}, twoVariables(1), filepath.Join(dir, "m"), 2)
	for _, tt := range []struct {
		s      *Saver
		v1, v2 bool
	}{{&Saver{}, false, true}, {&Saver{Format: FormatV1}, true, false}, {&Saver{Def: &tfpb.SaverDef{Version: tfpb.SaverDef_V1}}, true, false}} {
		if got := fmt.Sprint(tt.s.OwnFormat(v1), tt.s.OwnFormat(v2)); got != fmt.Sprint(tt.v1, tt.v2) {
			t.Errorf("format %v: %s", tt.s.format(), got)
		}
	}
}

// A graph with two savers does not help.
func TestSaverDefOfGraph(t *testing.T) {
	s := &Saver{MetaGraph: &tfpb.MetaGraphDef{CollectionDef: map[string]*tfpb.CollectionDef{
		"savers": {Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{[]byte("\xff")}}}}}}}
	_, err := s.Save(t.Context(), sessiontest.OpSession{Session: twoVariables(1)}, filepath.Join(t.TempDir(), "m"), session.NoStep)
	if err == nil || errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("saved: %v", err)
	}
}
