package math

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// What the k-means of TensorFlow 1 starts from, and assigns points with.
var clusterOps = exec.OpTable{
	"KmeansPlusPlusInitialization": {Build: exec.WithoutAttrs(chooseCenters)},
	"KMC2ChainInitialization":      {Build: exec.WithoutAttrs(chooseByChain)},
	"NearestNeighbors":             {Build: exec.WithoutAttrs(nearestNeighbors)},
}

func seededWords(seed int) *philox.Words {
	g := philox.New(uint64(seed), 0)
	return philox.NewWords(&g)
}

// halfSquare is half of the square of a row's length.
func halfSquare(row []float32) (sum float32) {
	for _, v := range row {
		sum += v * v
	}
	return sum / 2
}

// rowsOf returns the rows of a matrix.
func rowsOf(c *exec.KernelContext, i int, what string) ([][]float32, error) {
	x := c.In(i)
	if len(x.Shape) != 2 {
		return nil, c.Invalid("%s must be a matrix, not %s", what, x.Describe())
	}
	rows := make([][]float32, x.Shape[0])
	for k := range rows {
		rows[k] = exec.Elems[float32](x)[k*x.Shape[1]:][:x.Shape[1]]
	}
	return rows, nil
}

// chooseCenters draws points as k-means++ does: in proportion to the squares of their
// distances from those before, the best of several tries each.
func chooseCenters(c *exec.KernelContext) error {
	points, err := rowsOf(c, 0, "points")
	if err != nil {
		return err
	}
	want, seed, retries := c.MustInt(1, "num_to_sample"), c.MustInt(2, "seed"), c.MustInt(3, "num_retries_per_sample")
	if want < 1 || want > len(points) {
		return c.Invalid("%d of %d points", want, len(points))
	}
	if retries < 0 {
		retries = 2 + int(math.Log(float64(want)))
	}
	s := newSeeding(points, seed)
	d := c.Out(0, exec.Float32, want, c.In(0).Shape[1])
	for i := range want {
		copy(exec.Elems[float32](d)[i*d.Shape[1]:], points[s.next(retries)])
	}
	return nil
}

// seeding is the choice of the first centers.
type seeding struct {
	points   [][]float32
	squares  []float32
	words    *philox.Words
	distance []float32 // half of the square, of each point from the centers
	sums     []float32 // of the distances up to each point
	chosen   map[int]bool
}

func newSeeding(points [][]float32, seed int) *seeding {
	s := &seeding{points: points, words: seededWords(seed), sums: make([]float32, len(points)), chosen: map[int]bool{}}
	for _, p := range points {
		s.squares, s.distance = append(s.squares, halfSquare(p)), append(s.distance, float32(math.Inf(1)))
	}
	return s
}

// next returns the next center, the best of one draw and the retries.
func (s *seeding) next(retries int) int {
	sum := float32(0)
	for i, d := range s.distance {
		sum += d
		s.sums[i] = sum
	}
	best, least, nearest := 0, float32(math.Inf(1)), s.distance
	for range retries + 1 {
		i := s.draw()
		distance, all := s.with(i)
		if retries == 0 || all < least {
			best, least, nearest = i, all, distance
		}
	}
	s.distance = nearest
	s.chosen[best] = true
	return best
}

func (s *seeding) draw() int {
	if len(s.chosen) == 0 {
		return int(s.words.Uint64n(uint64(len(s.points))))
	}
	for {
		all := s.sums[len(s.sums)-1]
		if !(all > 0) { // the points are equal
			return int(s.words.Uint64n(uint64(len(s.points))))
		}
		at := philox.Float32(s.words.Next()) * all
		i, _ := slices.BinarySearchFunc(s.sums, at, func(sum, at float32) int {
			if sum > at {
				return 1
			}
			return -1
		})
		if i = min(i, len(s.points)-1); !s.chosen[i] {
			return i
		}
	}
}

// with returns the distances if point i is a center too, and their sum.
func (s *seeding) with(i int) (distance []float32, sum float32) {
	for k, p := range s.points {
		d := min(s.distance[k], s.squares[k]-product(p, s.points[i])+s.squares[i])
		distance = append(distance, d)
		sum += d
	}
	return distance, sum
}

func product(a, b []float32) (sum float32) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// chooseByChain walks along distances; the place where it ends is the next center.
func chooseByChain(c *exec.KernelContext) error {
	x := c.In(0)
	if len(x.Shape) != 1 || x.Shape[0] == 0 {
		return c.Invalid("distances must be a vector, not %s", x.Describe())
	}
	words, at := seededWords(c.MustInt(1, "seed")), 0
	distances := exec.Elems[float32](x)
	for i := 1; i < len(distances); i++ {
		if distances[i] > philox.Float32(words.Next())*distances[at] {
			at = i
		}
	}
	exec.SetInt(c.Out(0, exec.Int64), 0, at)
	return nil
}

// nearestNeighbors finds the k centers that are closest to each point.
func nearestNeighbors(c *exec.KernelContext) error {
	points, err := rowsOf(c, 0, "points")
	if err != nil {
		return err
	}
	centers, err := rowsOf(c, 1, "centers")
	if err != nil {
		return err
	}
	k := c.MustInt(2, "k")
	if len(points) == 0 || k < 0 || c.In(0).Shape[1] != c.In(1).Shape[1] {
		return c.Invalid("the %d nearest of %s for %s", k, c.In(1).Describe(), c.In(0).Describe())
	}
	k = min(k, len(centers))
	index, distance := c.Out(0, exec.Int64, len(points), k), c.Out(1, exec.Float32, len(points), k)
	order, all, squares := make([]int, len(centers)), make([]float32, len(centers)), make([]float32, len(centers))
	for j, center := range centers {
		squares[j] = halfSquare(center)
	}
	for i, p := range points {
		for j, center := range centers {
			order[j], all[j] = j, squares[j]-product(p, center)
		}
		if k == 1 {
			order[0] = slices.Index(all, slices.Min(all))
		} else {
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a], all[b]) })
		}
		for n, j := range order[:k] {
			exec.SetInt(index, i*k+n, j)
			exec.Elems[float32](distance)[i*k+n] = 2 * (all[j] + halfSquare(p))
		}
	}
	return nil
}
