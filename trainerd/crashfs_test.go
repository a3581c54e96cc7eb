package trainerd

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

var errKilled = errors.New("killed")

// crashDisk is a disk for many restarts. Each life of a training has a file system on
// it that dies at some operation; then the disk is in one of the states, chosen
// at random, in which a power cut may leave it.
type crashDisk struct {
	t     *testing.T
	dir   string
	rnd   *rand.Rand
	state faultfs.State // at the beginning of the life
	fs    *faultfs.FS   // of the life
}

// liveFor begins a life that ends at the operation of that number, or never if
// it is 0.
func (d *crashDisk) liveFor(ops int) {
	d.fs = faultfs.NewFault(faultfs.Fault{At: ops, Kill: true})
}

func (d *crashDisk) isDead() bool { return d.fs.Failed() != "" }

// cutPower makes the directory what a power cut leaves of it, and returns how
// many files there are.
func (d *crashDisk) cutPower() int {
	disk := faultfs.NewDisk(d.dir, d.state)
	for range d.fs.Replay(disk) {
		continue
	}
	states := slices.Collect(disk.States(d.rnd, 4))
	d.state = states[d.rnd.IntN(len(states))]
	sessiontest.MustNoErr(d.t, d.state.LayOut(d.dir))
	return len(d.state.Files)
}
