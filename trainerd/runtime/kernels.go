package runtime

import (
	"slices"
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/array"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/audio"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/control"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/data"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/image"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/linalg"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/lists"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/math"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/nn"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/parsing"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/queue"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/random"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/sparse"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/state"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/summary"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/text"
)

// kernels returns the table of all ops, family by family.
var kernels = sync.OnceValues(func() (exec.OpTable, error) {
	table, err := exec.JoinOps(slices.Concat(
		array.Ops(),
		audio.Ops(),
		control.Ops(),
		data.Ops(),
		image.Ops(),
		linalg.Ops(),
		lists.Ops(),
		math.Ops(),
		nn.Ops(),
		parsing.Ops(),
		queue.Ops(),
		random.Ops(),
		sparse.Ops(),
		state.Ops(),
		summary.Ops(),
		text.Ops(),
	)...)
	if err == nil {
		checkRanks(table)
	}
	return table, err
})
