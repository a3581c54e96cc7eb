package checkpoint

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A pinned checkpoint stays, whatever the rotation says, until it is unpinned.
func TestPin(t *testing.T) {
	for name, policies := range map[string][]retention.Policy{"rotation": nil, "policies": {retention.Last(1)}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
			s := &Saver{MaxToKeep: 1, Retention: policies}
			first := save(t, s, sess, filepath.Join(dir, "m"), 1)
			sessiontest.MustNoErr(t, s.Pin(first))
			save(t, s, sess, filepath.Join(dir, "m"), 2)
			save(t, s, sess, filepath.Join(dir, "m"), 3)
			if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"m-1.index", "m-3.index"}) {
				t.Errorf("checkpoints %v; want the pinned one and the last", got)
			}
			sessiontest.MustNoErr(t, s.Unpin(first))
			sessiontest.MustNoErr(t, s.Unpin(first)) // twice is not an error
			if err := s.Pin(filepath.Join(dir, "m-2")); err == nil {
				t.Error("a checkpoint that is gone can be pinned")
			}
		})
	}
}

// A V1 checkpoint of several files is pinned by its pattern, and by its name without.
func TestPinShardsOfV1(t *testing.T) {
	for _, name := range []string{"m-1", "m-1-?????-of-00002"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "w": sessiontest.Vector[float32](2)})
			s := &Saver{MaxToKeep: 1, Format: FormatV1, Shards: 2}
			save(t, s, sess, filepath.Join(dir, "m"), 1)
			sessiontest.MustNoErr(t, s.Pin(filepath.Join(dir, name)))
			save(t, s, sess, filepath.Join(dir, "m"), 2)
			save(t, s, sess, filepath.Join(dir, "m"), 3)
			want := []string{"m-1-00000-of-00002", "m-1-00001-of-00002", "m-3-00000-of-00002", "m-3-00001-of-00002"}
			if got := sessiontest.Files(t, dir, "*-of-00002"); !cmp.Equal(got, want) {
				t.Errorf("checkpoints %v; want the pinned one and the last", got)
			}
			sessiontest.MustNoErr(t, s.Unpin(filepath.Join(dir, name)))
			if got := sessiontest.Files(t, dir, "*.pin"); len(got) > 0 {
				t.Errorf("%v after Unpin", got)
			}
		})
	}
}
