package checkpoint

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// The manifest has what the program and evaluations have measured, of whichever
// step, and what the checkpoint was made from.
func TestManifestOfSave(t *testing.T) {
	dir := t.TempDir()
	s := &Saver{ConfigHash: "sha256:1"}
	first := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 1)
	cut, err := s.Snapshot(t.Context(), twoVariables(1), "")
	sessiontest.MustNoErr(t, err)
	cut.Metrics = map[string]float64{"loss": 0.5, "auc": 0.75}
	cut.Measured = map[string]manifest.Measurement{"auc": {Step: 3, Source: "eval"}}
	second, err := s.Write(t.Context(), cut, filepath.Join(dir, "m"), 5)
	sessiontest.MustNoErr(t, err)
	m, err := manifest.Read(second)
	sessiontest.MustNoErr(t, err)
	want := &manifest.Manifest{Step: 5, WallTime: m.WallTime, ConfigHash: "sha256:1", Parent: "m-1", Files: m.Files,
		Metrics:  map[string]manifest.Metric{"loss": 0.5, "auc": 0.75},
		Measured: map[string]manifest.Measurement{"loss": {Step: 5, Source: manifest.SourceProgram}, "auc": {Step: 3, Source: "eval"}}}
	if diff := cmp.Diff(m, want); diff != "" || m.WallTime.Location() != time.UTC {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if m, err = manifest.Read(first); err != nil || m.Parent != "" || len(m.Metrics) > 0 || m.Step != 1 {
		t.Errorf("the first: %+v, %v", m, err)
	}
	m, err = manifest.Read(save(t, s, twoVariables(1), filepath.Join(dir, "n"), session.NoStep))
	if err != nil || m.Step != session.NoStep || m.Parent != "m-5" {
		t.Errorf("without a step: %+v, %v", m, err)
	}
	other := new(Saver)
	sessiontest.MustNoErr(t, other.Restore(t.Context(), twoVariables(0), first))
	m, err = manifest.Read(save(t, other, twoVariables(1), filepath.Join(dir, "m"), 7))
	if err != nil || m.Parent != "m-1" {
		t.Errorf("after a restore: %+v, %v", m, err)
	}
	step, metrics := storedMetrics(second)
	if want := (Measurements{"loss": {0.5, 5, manifest.SourceProgram}}); step != 5 || !cmp.Equal(metrics, want) {
		t.Errorf("stored: step %d, %v", step, metrics)
	}
	sessiontest.MustNoErr(t, os.Remove(manifest.Name(second)))
	if step, metrics := storedMetrics(second); step != 5 || len(metrics) > 0 {
		t.Errorf("without a manifest: step %d, %v", step, metrics)
	}
}

// A save whose manifest cannot be written is whole all the same.
func TestManifestFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := sessiontest.MemoryDir(t)
		fsys := faultfs.New(n)
		log, lines := sessiontest.NewLog()
		prefix, err := (&Saver{FS: fsys, Logger: log}).Save(t.Context(), twoVariables(1), filepath.Join(dir, "m"), 1)
		if fsys.Ops() < n {
			t.Fatal("no operation on a manifest has failed")
		}
		if strings.Contains(lines.String(), "checkpoint has no manifest") {
			sessiontest.MustNoErr(t, err)
			sessiontest.MustNoErr(t, new(Saver).Restore(t.Context(), twoVariables(0), prefix))
			return
		}
	}
}

// Values are given by the step that they are about.
func TestMeasurements(t *testing.T) {
	var m Measurements
	if values, sources := m.Of(1); values != nil || sources != nil {
		t.Errorf("of none: %v, %v", values, sources)
	}
	m = m.With("loss", Measurement{0.5, 1, "eval"}).With("auc", Measurement{0.7, 2, ""}).With("x", Measurement{0, 1, ""})
	values, sources := m.Of(1)
	if !cmp.Equal(values, map[string]float64{"loss": 0.5, "x": 0}) || !cmp.Equal(sources, map[string]string{"loss": "eval"}) {
		t.Errorf("of step 1: %v, %v", values, sources)
	}
	if values, _ := m.Of(3); values != nil {
		t.Errorf("of step 3: %v", values)
	}
}

// The best checkpoint by its own metric stays, also after a restart; a value that
// is about another step does not count.
func TestRetentionByMetrics(t *testing.T) {
	dir := t.TempDir()
	best := []retention.Policy{retention.Best{Metric: "loss"}, retention.Last(1)}
	losses := map[int64]float64{1: 3, 2: 1, 3: 2, 4: 5}
	for step := int64(1); step <= 4; step++ {
		s := &Saver{Retention: best}
		if found, err := s.Find(dir, "m"); err == nil && !found.IsEmpty() {
			s.Recover(found, nil, found.Prefixes[0])
		}
		cut, err := s.Snapshot(t.Context(), twoVariables(1), "")
		sessiontest.MustNoErr(t, err)
		cut.Metrics = map[string]float64{"loss": losses[step]}
		if step == 4 { // of an evaluation of step 2
			cut.Metrics["loss"], cut.Measured = 0, map[string]manifest.Measurement{"loss": {Step: 2}}
		}
		_, err = s.Write(t.Context(), cut, filepath.Join(dir, "m"), step)
		sessiontest.MustNoErr(t, err)
		if step == 4 {
			var why []string
			for _, k := range s.Kept() {
				why = append(why, fmt.Sprintf("%s: %s", filepath.Base(k.Prefix), strings.Join(k.Why, ", ")))
			}
			if diff := cmp.Diff(why, []string{"m-2: best loss, place 1: 1", "m-4: among the last 1"}); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		}
	}
	if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"m-2.index", "m-4.index"}) {
		t.Errorf("checkpoints %v", got)
	}
}

// Kept says of each checkpoint why it stays, once, the oldest first.
func TestKept(t *testing.T) {
	for name, tt := range map[string]struct {
		saver *Saver
		pin   int64
		again int64 // a step that is saved again at the end
		want  []string
	}{
		"all":                           {&Saver{MaxToKeep: -1}, 0, 0, []string{"1: all are kept", "2: all are kept", "3: all are kept", "4: all are kept"}},
		"all, one twice":                {&Saver{MaxToKeep: -1}, 0, 2, []string{"1: all are kept", "3: all are kept", "4: all are kept", "2: all are kept"}},
		"two":                           {&Saver{MaxToKeep: 2}, 0, 0, []string{"3: among the last 2", "4: among the last 2"}},
		"the default":                   {&Saver{}, 0, 0, []string{"1: among the last 5", "2: among the last 5", "3: among the last 5", "4: among the last 5"}},
		"spaced":                        {&Saver{MaxToKeep: 1, KeepEvery: 90 * time.Minute}, 0, 0, []string{"3: one every 1h30m0s", "4: among the last 1"}},
		"pinned":                        {&Saver{MaxToKeep: 1}, 1, 0, []string{"1: pinned", "4: among the last 1"}},
		"pinned, twice":                 {&Saver{MaxToKeep: 1}, 1, 1, []string{"1: pinned, among the last 1"}},
		"policies":                      {&Saver{Retention: []retention.Policy{retention.Last(2)}}, 1, 0, []string{"1: pinned", "3: among the last 2", "4: among the last 2"}},
		"no policy that keeps the last": {&Saver{Retention: []retention.Policy{retention.Best{Metric: "loss"}}}, 0, 0, []string{"4: newest"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				steps := seq(1, 4)
				if tt.again > 0 {
					steps = append(steps, tt.again)
				}
				for _, step := range steps {
					r.save(tt.saver, step)
					if step == tt.pin {
						sessiontest.MustNoErr(t, tt.saver.Pin(filepath.Join(r.dir, fmt.Sprint("m-", step))))
					}
					time.Sleep(time.Hour)
				}
				var got []string
				tt.saver.Kept() // as often as one likes
				for _, k := range tt.saver.Kept() {
					got = append(got, fmt.Sprintf("%d: %s", k.Step, strings.Join(k.Why, ", ")))
				}
				if diff := cmp.Diff(got, tt.want); diff != "" {
					t.Errorf("(-got +want):\n%s", diff)
				}
			})
		})
	}
	r := newRig(t) // a run that keeps all follows one that did not
	r.save(&Saver{}, 1, 2)
	all := &Saver{MaxToKeep: -1}
	all.RecoverLastCheckpoints([]string{filepath.Join(r.dir, "m-1"), filepath.Join(r.dir, "m-2")})
	r.save(all, 3)
	var steps []int64
	for _, k := range all.Kept() {
		steps = append(steps, k.Step)
	}
	if !slices.Equal(steps, []int64{1, 2, 3}) {
		t.Errorf("kept, oldest first: %v", steps)
	}
	if got := Reasons(nil, nil); len(got) != 0 {
		t.Errorf("reasons for none: %v", got)
	}
	if got := Reasons([]retention.Policy{retention.Last(1)}, make([]retention.Checkpoint, 2)); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 || got[1][0] == "newest" {
		t.Errorf("reasons: %q", got)
	}
}

// What cannot be looked at is taken for pinned.
func TestPinned(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "file"} {
		sessiontest.MustNoErr(t, Pin(nil, filepath.Join(dir, name)))
	}
	all := []retention.Checkpoint{{Prefix: filepath.Join(dir, "a")}, {Prefix: filepath.Join(dir, "c")}, {Prefix: filepath.Join(dir, "file.pin", "m")}}
	if got := keepPinned.Keep(all); !cmp.Equal(got, []string{"pinned", "", "pinned"}) {
		t.Errorf("reasons: %q", got)
	}
	if !IsPin("m-1.pin") || IsPin("m-1.index") || IsPin("pin") {
		t.Error("names of pins")
	}
}

// A pin, and its removal, are reported when they are durable, and not before.
func TestPinFails(t *testing.T) {
	dir := t.TempDir()
	prefix := save(t, new(Saver), &sessiontest.Session{Model: twoVariables(1).Model}, filepath.Join(dir, "m"), 1)
	each := func(what string, act func(s *Saver) error) {
		for n := 1; ; n++ {
			fsys := faultfs.New(n)
			err := act(&Saver{FS: fsys})
			if fsys.Ops() < n {
				sessiontest.MustNoErr(t, err)
				if n < 3 { // with the sync of the directory
					t.Errorf("%s: %d operations", what, n-1)
				}
				return
			}
			if err == nil {
				t.Errorf("%s: %s fails, and nothing is reported", what, fsys.Failed())
			}
		}
	}
	each("pin", func(s *Saver) error { return s.Pin(prefix) })
	each("unpin", func(s *Saver) error {
		sessiontest.MustNoErr(t, new(Saver).Pin(prefix))
		return s.Unpin(prefix)
	})
	fsys := faultfs.New(0)
	sessiontest.MustNoErr(t, (&Saver{FS: fsys}).Unpin(prefix))
	if IsPinned(prefix) || fsys.Failed() != "" {
		t.Error("still pinned")
	}
}

// renames is a disk that notes under which names files appear.
type renames struct {
	atomicfile.FS
	names []string
}

func (r *renames) Rename(from, to string) error {
	r.names = append(r.names, filepath.Base(to))
	return r.FS.Rename(from, to)
}

// A large checkpoint is current before its files are read for their checksums: a kill in
// between loses neither the checkpoint nor its metrics. The manifest of a small one is
// written once.
func TestCurrentBeforeSums(t *testing.T) {
	for size, sums := range map[int][]string{manifest.QuickSums / 4: {"m-1.manifest.json"}, 1: nil} {
		dir := sessiontest.MemoryDir(t)
		disk := &renames{FS: atomicfile.OrOS(nil)}
		sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector(make([]float32, size)...)})
		save(t, &Saver{FS: disk}, sess, filepath.Join(dir, "m"), 1)
		want := append([]string{"m-1.data-00000-of-00001", "m-1.index", "m-1.manifest.json", "checkpoint"}, sums...)
		if !slices.Equal(disk.names, want) {
			t.Errorf("files appear in the order %q, want %q", disk.names, want)
		}
		m, err := manifest.Read(filepath.Join(dir, "m-1"))
		if err != nil || len(m.Files) != 2 {
			t.Errorf("manifest %+v, %v", m, err)
		}
	}
}

// noSums is a disk on which a manifest is written once, without the sums that come later.
type noSums struct {
	ckptfmt.FS
	manifests int
}

func (f *noSums) Rename(from, to string) error {
	if strings.HasSuffix(to, ".manifest.json") {
		if f.manifests++; f.manifests > 1 {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EIO}
		}
	}
	return f.FS.Rename(from, to)
}

// A save whose sums cannot be added succeeds, and the log says so. A checkpoint without a
// manifest gets none.
func TestSumsFail(t *testing.T) {
	dir, log := sessiontest.MemoryDir(t), new(bytes.Buffer)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector(make([]float32, manifest.QuickSums/4)...)})
	s := &Saver{FS: &noSums{FS: atomicfile.OrOS(nil)}, Logger: slog.New(slog.NewTextHandler(log, nil))}
	prefix := save(t, s, sess, filepath.Join(dir, "m"), 1)
	if m, err := manifest.Read(prefix); err != nil || m.Files != nil || !strings.Contains(log.String(), "no checksums in its manifest") {
		t.Errorf("manifest %+v, %v; the log:\n%s", m, err, log)
	}
	s.AddSums(t.Context(), filepath.Join(dir, "other"))
	if _, err := os.Stat(manifest.Name(filepath.Join(dir, "other"))); err == nil {
		t.Error("there is a manifest of no checkpoint")
	}
}

// Of large checkpoints in quick succession only the first gets checksums, and the last of
// the run. One without them is restored, retained and moved aside like any other.
func TestSumsAreRare(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector(make([]float32, manifest.QuickSums/4)...)})
	s := &Saver{Retention: []retention.Policy{retention.Best{Metric: "loss", N: 1}, retention.Last(2)}}
	sums := func(prefix string) int {
		m, err := manifest.Read(prefix)
		sessiontest.MustNoErr(t, err)
		return len(m.Files)
	}
	var saved []string
	for step := range int64(4) {
		cut, err := s.Snapshot(t.Context(), sess, "")
		sessiontest.MustNoErr(t, err)
		cut.Metrics = map[string]float64{"loss": math.Abs(float64(step) - 1)}
		prefix, err := s.Write(t.Context(), cut, filepath.Join(dir, "m"), step)
		sessiontest.MustNoErr(t, err)
		if want := map[bool]int{true: 2}[step == 0]; sums(prefix) != want {
			t.Errorf("step %d: sums of %d files, want %d", step, sums(prefix), want)
		}
		if s.sumsDue.IsZero() {
			t.Error("the next sums are due at once")
		}
		s.sumsDue = time.Now().Add(time.Hour) // the saves may take long here
		saved = append(saved, prefix)
	}
	if got := s.LastCheckpoints(); !slices.Equal(got, saved[1:]) {
		t.Errorf("kept %v, want the best and the last two of %v", got, saved)
	}
	text, err := os.ReadFile(manifest.Name(saved[1]))
	if err != nil || strings.Contains(string(text), "files") {
		t.Errorf("manifest without sums: %s, %v", text, err)
	}
	again := new(Saver)
	again.RecoverLastCheckpoints(saved[1:])
	if kept := again.Kept(); len(kept) != 3 || kept[0].Metrics["loss"] != 0 {
		t.Errorf("the next run knows %+v", kept)
	}
	sessiontest.MustNoErr(t, again.Restore(t.Context(), sess, saved[1]))
	cut, err := again.Snapshot(t.Context(), sess, "")
	sessiontest.MustNoErr(t, err)
	if first, err := again.Write(t.Context(), cut, filepath.Join(dir, "m"), 9); err != nil || sums(first) != 0 {
		t.Errorf("the first save of a resumed run: %v; it was read for %d sums", err, sums(first))
	}
	if _, err := Quarantine(nil, saved[2], time.Now()); err != nil || len(sessiontest.Files(t, dir, "m-2*")) > 0 {
		t.Errorf("moved aside: %v", err)
	}
	s.AddSums(t.Context(), saved[3])
	if sums(saved[3]) != 2 {
		t.Error("the last one has no sums")
	}
	save(t, s, sess, filepath.Join(dir, "m"), 5) // saves may follow
	for name, err := range manifest.Verify(t.Context(), saved[3]) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
