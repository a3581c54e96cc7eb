package checkpoint

import (
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A checkpoint is written again under its own name, and one that has only its second
// name gets its own back. Whenever the power is cut, one of them is whole: never
// neither, and never a mixture that counts as one.
func TestPowerCutWhileNamesChange(t *testing.T) {
	for name, kind := range savers() {
		t.Run(name, func(t *testing.T) {
			for what, change := range map[string]func(t *testing.T, s *Saver, prefix string){
				"written again": func(t *testing.T, s *Saver, prefix string) {
					save(t, s, twoVariables(2), filepath.Join(filepath.Dir(prefix), "m"), 4)
				},
				"own name": func(t *testing.T, s *Saver, prefix string) {
					sessiontest.MustNoErr(t, overwriting(s, prefix))
					if got := s.Reinstate(previousName(prefix)); got != prefix {
						t.Fatalf("got %s, want %s", got, prefix)
					}
				},
			} {
				dir, disk := sessiontest.MemoryDir(t), sessiontest.MemoryDir(t)
				fsys := faultfs.New(0)
				s := &Saver{Shards: kind.Shards, Format: kind.Format, FS: fsys}
				prefix := save(t, s, twoVariables(1), filepath.Join(dir, "m"), 4)
				promised := fsys.Ops()
				change(t, s, prefix)
				for n := promised; n <= fsys.Ops(); n++ {
					for state, err := range fsys.Crashes(n, dir, disk) {
						sessiontest.MustNoErr(t, err)
						sess := twoVariables(0)
						found := restoreFirst(t, sess, disk, "m")
						if v := first(t, sess.Get("v")); found == "" || v != first(t, sess.Get("w")) || n == fsys.Ops() && what == "written again" && v != 2 {
							t.Fatalf("%s: %s: found %q with %v and %v; files %v", what, state, found, v, first(t, sess.Get("w")), sessiontest.Files(t, disk, "*"))
						}
					}
				}
			}
		})
	}
}
