package checkpoint

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A current checkpoint that is older than all in the list is the first of it, and its end.
func TestListedBeforeAll(t *testing.T) {
	at := time.Unix(1e9, 0)
	r := rotation{kept: []stored{{prefix: "m-2", saved: at.Add(time.Second)}, {prefix: "m-3", saved: at.Add(2 * time.Second)}}}
	var got []string
	for _, k := range r.listed(stored{prefix: "m-1", saved: at}) {
		got = append(got, k.prefix)
	}
	if want := []string{"m-1", "m-2", "m-3", "m-1"}; !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
}

// A checkpoint that stays without being in the list, and is saved again, is only in the list.
func TestPutBackIntoTheList(t *testing.T) {
	r := rotation{outside: []Kept{{Checkpoint: retention.Checkpoint{Prefix: "m-1"}}, {Checkpoint: retention.Checkpoint{Prefix: "m-2"}}}}
	r.put(stored{prefix: "m-1"})
	if len(r.kept) != 1 || len(r.outside) != 1 || r.outside[0].Prefix != "m-2" {
		t.Errorf("the list is %v, outside of it are %v", r.kept, r.outside)
	}
}

// What a save has replaced, and the disk does not delete, is not named by the state file.
func TestReplacedIsNotListed(t *testing.T) {
	r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	s := &Saver{FS: disk}
	r.save(s, 1)
	disk.fails = func(op, base string) bool { return op == "remove" && strings.Contains(base, previousSuffix) }
	r.save(s, 1, 2)
	state, err := ckptdir.ReadState(r.dir, nil)
	sessiontest.MustNoErr(t, err)
	for _, prefix := range state.AllModelCheckpointPaths {
		if strings.Contains(prefix, previousSuffix) {
			t.Errorf("the state file names %s", prefix)
		}
	}
}
