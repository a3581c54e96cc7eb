package nn

import (
	"github.com/trainerd/trainerd/internal/vec"
)

// shot is a batch of images whose lines of tiles are transformed. With a
// stride of two, an image is four of a quarter of the pixels, its phases, which
// are further channels.
type shot[T float32 | float64] struct {
	images    []T
	h, w, n   int // pixels and channels
	top, left int // pixels before the first of an image
	stride    int

	down, across  int // groups of the kernel's positions
	side          int // pixels of a patch, in each phase
	lines, tilesW int // lines of tiles that the output has, and tiles of a line: the groups across need more than the output has
	strips        int // of tiles of a plane: then images are strips of volumes, and their lines planes
	deep, before  int // planes of a volume, and before the first
	transform     func(d []T, to vec.Matrices, x []T, from vec.Matrices, channels, count int)
}

// stacked makes the images strips of tiles, one below the other along the planes of volumes. The
// kernel's positions along the depth are groups of it.
func (s *shot[T]) stacked(d extent, strips int) {
	s.strips, s.deep, s.before, s.lines, s.down = strips, d.in, d.before, d.out, d.kernel
}

// depth is the number of channels of all phases.
func (s *shot[T]) depth() int { return s.stride * s.stride * s.n }

// strip is the memory that a line of tiles needs.
func (s *shot[T]) strip() int {
	return s.side * s.stride * s.stride * (tileSide*s.tilesW + s.side - tileSide) * s.n
}

// together returns how many of so many lines of tiles, from one on, have factors
// that follow each other: with groups, those of an image, which end with the lines
// that the last groups need.
func (s *shot[T]) together(from, lines int) int {
	if s.down == 1 {
		return lines
	}
	return min(lines, s.lines-from%s.lines)
}

// factorsOf transforms lines of tiles that follow each other to the planes, with
// what their groups need.
func (s *shot[T]) factorsOf(d []T, plane int, strip []T, from, lines int) {
	for k := range lines + s.down - 1 {
		image, line := (from+k)/s.lines, (from+k)%s.lines
		if s.down > 1 {
			image, line = from/s.lines, from%s.lines+k
		}
		s.line(d[k*s.tilesW*s.depth():], plane, strip, image, line)
	}
}

// line transforms a line of tiles of an image to the planes. Patches inside the
// image are read in place, others are painted on the strip.
func (s *shot[T]) line(d []T, factorPlane int, strip []T, image, line int) {
	if s.strips > 0 {
		plane := line - s.before
		if plane < 0 || plane >= s.deep {
			s.nothing(d, factorPlane)
			return
		}
		image, line = image/s.strips*s.deep+plane, image%s.strips
	}
	step, patch := tileSide*s.stride, s.side*s.stride
	y := step*line - s.top
	pixels := s.images[image*s.h*s.w*s.n : (image+1)*s.h*s.w*s.n]
	from, to := 0, 0 // the tiles whose patches are inside
	if y >= 0 && y+patch <= s.h {
		from = min(s.tilesW, max(0, (s.left+step-1)/step))
		to = max(from, min(s.tilesW, (s.w-patch+s.left+step)/step))
	}
	if from < to {
		s.patches(d, factorPlane, pixels[(y*s.w+step*from-s.left)*s.n:], s.w, from, to)
	}
	s.painted(d, factorPlane, strip, pixels, y, 0, from)
	s.painted(d, factorPlane, strip, pixels, y, to, s.tilesW)
}

// nothing makes the factors of a line outside of the volumes.
func (s *shot[T]) nothing(d []T, plane int) {
	for k := range factors {
		clear(d[k*plane : k*plane+s.tilesW*s.depth()])
	}
}

// painted transforms tiles of a line that begins at pixel row y.
func (s *shot[T]) painted(d []T, plane int, strip, pixels []T, y, from, to int) {
	if from >= to {
		return
	}
	v := canvas{h: s.side * s.stride, w: s.stride * (tileSide*(to-from) + s.side - tileSide), top: -y, left: s.left - tileSide*s.stride*from}
	paint(v, strip, pixels, s.h, s.w, s.n)
	s.patches(d, plane, strip, v.w, from, to)
}

// patches transforms the patches of tiles; x has the first pixel and
// lines of so many pixels.
func (s *shot[T]) patches(d []T, plane int, x []T, width, from, to int) {
	places := vec.Matrices{Row: s.stride * width * s.n, Col: s.stride * s.n, Next: tileSide * s.stride * s.n}
	for p := range s.stride * s.stride {
		at := (p/s.stride*width + p%s.stride) * s.n
		s.transform(d[from*s.depth()+p*s.n:], planes(plane, s.depth()), x[at:], places, s.n, to-from)
	}
}

func inputTransform[T float32 | float64](d []T, to vec.Matrices, x []T, from vec.Matrices, channels, count int) {
	vec.WinogradInput(d, to, x, from, channels, count)
}

func outputGradTransform[T float32 | float64](d []T, to vec.Matrices, x []T, from vec.Matrices, channels, count int) {
	vec.WinogradOutputGrad(d, to, x, from, channels, count)
}

// taps says which positions of a phase's filter are of the kernel, in one
// dimension: position m is position first+m*step, or first-m*step if it is
// turned. Of later groups, the first position is that of another group.
type taps struct {
	first, step, kernel int
	later               bool
}

// at returns the position in the kernel, or false.
func (t taps) at(m int) (int, bool) {
	p := t.first + m*t.step
	return p, p >= 0 && p < t.kernel && (m > 0 || !t.later)
}

// group returns the positions of a group, of a phase whose first group they are.
func (t taps) group(i int) taps {
	return taps{t.first + tileSide*i*t.step, t.step, t.kernel, i > 0}
}

// has reports whether factor i of the filter can be other than zero: the first
// is the first position alone, the last the last one.
func (t taps) has(i int) bool {
	_, low := t.at(0)
	_, high := t.at(2)
	return (i != 0 || low) && (i != 3 || high)
}

// phaseTaps are the positions of a phase in both dimensions.
type phaseTaps struct {
	y, x  taps
	first int // position of the kernel: that of the plane
}

// has reports whether factor k can be other than zero.
func (p phaseTaps) has(k int) bool { return p.y.has(k/patchSide) && p.x.has(k%patchSide) }

// at returns the place of position k of 3 by 3 in the kernel, or -1.
func (p phaseTaps) at(k int) int {
	y, inY := p.y.at(k / 3)
	x, inX := p.x.at(k % 3)
	if !inY || !inX {
		return -1
	}
	return p.first + y*p.x.kernel + x
}

// forwardTaps appends the positions of the phases of a convolution's images.
func (g *geometry) forwardTaps(list []phaseTaps) []phaseTaps {
	s := g.h.stride
	for p := range s * s {
		y, x := taps{first: p / s, step: s, kernel: g.h.kernel}, taps{first: p % s, step: s, kernel: g.w.kernel}
		list = appendGroups(list, phaseTaps{y: y, x: x}, g.h.groups(), g.w.groups())
	}
	return list
}

// stackedTaps appends to the positions of one plane of the kernel those of the others.
func (g *geometry) stackedTaps(list []phaseTaps) []phaseTaps {
	for p := 1; p < g.d.kernel; p++ {
		next := list[0]
		next.first = p * g.h.kernel * g.w.kernel
		list = append(list, next)
	}
	return list
}

// appendGroups appends the groups of a phase.
func appendGroups(list []phaseTaps, p phaseTaps, down, across int) []phaseTaps {
	for i := range down * across {
		list = append(list, phaseTaps{y: p.y.group(i / across), x: p.x.group(i % across)})
	}
	return list
}

// turned returns the positions of the pixels p, p+stride, .. of an image's
// gradient: its filter begins with gradient u+from for pixel p+u*stride.
func (e *extent) turned(p, from int) taps {
	v := e.phase(p)
	return taps{first: v.r + e.stride*(v.ahead-from), step: -e.stride, kernel: e.kernel}
}

// window returns where the gradients that all phases together need begin, and
// how many there are.
func (e *extent) window() (from, n int) {
	end := 0
	for p := range e.stride {
		v := e.phase(p)
		if p == 0 {
			from, end = v.ahead-v.taps+1, v.ahead+1
		}
		from, end = min(from, v.ahead-v.taps+1), max(end, v.ahead+1)
	}
	return from, end - from
}

// gathered reports whether the gradients that a tile of an image needs are a
// patch, whatever its phase, or one of each group.
func (g *geometry) gathered() bool {
	if g.h.stride == 1 {
		return true
	}
	_, h := g.h.window()
	_, w := g.w.window()
	return h <= 3 && w <= 3
}
