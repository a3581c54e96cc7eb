package elem

import (
	"sync"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Runs of the innermost dimension that are shorter than this are joined with those of the
// next one, where that gives no more than so many elements.
const (
	shortRun  = 32
	joinedRun = 1024
)

var joinedRuns = sync.Pool{New: func() any { return new([joinedRun]float32) }}

// zipShort is Zip of float32s where one operand is broadcast along runs that are short, as
// the means of groups of channels are: it is written out for two dimensions at a time, and
// once for all places that it is the same at. It reports false where it does not apply.
func (b *Broadcast) zipShort(d, x, y []float32, vv func(d, x, y []float32)) bool {
	inner := b.loops - 1
	if inner < 1 || b.dim[inner] >= shortRun || b.dim[inner]*b.dim[inner-1] > joinedRun || b.dim[inner-1] < 4 {
		return false
	}
	n := b.dim[inner] * b.dim[inner-1]
	isX := b.contiguous(&b.sa)
	if !isX && !b.contiguous(&b.sb) {
		return false
	}
	room := joinedRuns.Get().(*[joinedRun]float32)
	defer joinedRuns.Put(room)
	row, written := room[:n], -1
	var p place
	for o := 0; o < len(d); o += n {
		if isX {
			if p.y != written {
				b.write(row, y[p.y:], &b.sb)
				written = p.y
			}
			vv(d[o:o+n], x[p.x:p.x+n], row)
		} else {
			if p.x != written {
				b.write(row, x[p.x:], &b.sa)
				written = p.x
			}
			vv(d[o:o+n], row, y[p.y:p.y+n])
		}
		b.advance(&p, inner-2)
	}
	return true
}

// contiguous reports whether elements follow each other in the last two dimensions.
func (b *Broadcast) contiguous(stride *[exec.MaxRank]int) bool {
	inner := b.loops - 1
	return stride[inner] == 1 && stride[inner-1] == b.dim[inner]
}

// write writes an operand out for the last two dimensions.
func (b *Broadcast) write(row, x []float32, stride *[exec.MaxRank]int) {
	inner := b.loops - 1
	n, step, next := b.dim[inner], stride[inner], stride[inner-1]
	if step == 1 && next == 0 {
		repeatShort(row, x[:n])
		return
	}
	for i := range b.dim[inner-1] {
		to := row[i*n:][:n]
		if step == 0 {
			v := x[i*next]
			for k := range to {
				to[k] = v
			}
			continue
		}
		for k, at := 0, i*next; k < n; k, at = k+1, at+step {
			to[k] = x[at]
		}
	}
}

// repeatShort fills row with x, some by loops and the rest by copies of many elements.
func repeatShort(row, x []float32) {
	const some = 16
	done := 0
	for done < len(row) && done < some {
		for k, v := range x {
			row[done+k] = v
		}
		done += len(x)
	}
	for done < len(row) {
		done += copy(row[done:], row[:done])
	}
}
