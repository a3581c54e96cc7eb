package dataset

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArrange holds the shuffle fast. A change here means that trainings that
// are resumed with a new version see other rows than before.
func TestArrange(t *testing.T) {
	tests := []struct {
		name        string
		seed, epoch uint64
		want        []uint32
	}{
		{"seed 0, epoch 0", 0, 0, []uint32{4, 1, 0, 7, 2, 9, 5, 8, 6, 3}},
		{"seed 0, epoch 1", 0, 1, []uint32{7, 6, 2, 9, 1, 8, 3, 4, 0, 5}},
		{"seed 1, epoch 0", 1, 0, []uint32{6, 3, 1, 5, 8, 4, 9, 2, 7, 0}},
		{"split", 1, splitEpoch, []uint32{2, 3, 5, 1, 6, 8, 4, 0, 7, 9}},
	}
	for _, tt := range tests {
		order := make([]uint32, 10)
		arrange(order, true, tt.seed, tt.epoch)
		if diff := cmp.Diff(tt.want, order); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestArrangeUniform counts how often each number comes to each place.
func TestArrangeUniform(t *testing.T) {
	const n, epochs = 6, 6000
	var counts [n][n]int
	order := make([]uint32, n)
	for e := range uint64(epochs) {
		arrange(order, true, 7, e)
		for place, number := range order {
			counts[place][number]++
		}
	}
	for place, row := range counts {
		for number, c := range row {
			// 1000 expected, standard deviation 29; the seed is fixed.
			if c < 850 || c > 1150 {
				t.Errorf("number %d came to place %d %d times of %d, want about %d", number, place, c, epochs, epochs/n)
			}
		}
	}
}

func TestBatchEpochs(t *testing.T) {
	const rows, size = 10, 4
	d := read(t, numbered(rows, 3), Options{Label: Column{Index: 1}, Shuffle: true, Seed: 5, BatchSize: size})
	var stream []int
	for step := range int64(3 * rows) {
		x, y, _ := d.Batch(step)
		for i, v := range floats(x) {
			stream = append(stream, int(v))
			if ints(y)[i] != int64(v)%3 {
				t.Fatalf("step %d: row %v has label %d", step, v, ints(y)[i])
			}
		}
	}
	var before []int
	for epoch := range slices.Chunk(stream, rows) {
		seen := slices.Sorted(slices.Values(epoch))
		if !slices.Equal(seen, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Fatalf("an epoch holds the rows %v", epoch)
		}
		if slices.Equal(epoch, before) {
			t.Errorf("two epochs have the same order %v", epoch)
		}
		before = epoch
	}
	if got := d.StepsPerEpoch(); got != 3 {
		t.Errorf("StepsPerEpoch is %d, want 3", got)
	}
}

// TestBatchPure asks for batches in several orders, from one and from several
// data sets, as a resumed training does.
func TestBatchPure(t *testing.T) {
	for _, shuffle := range []bool{true, false} {
		opts := Options{Label: Column{Index: 1}, Shuffle: shuffle, Seed: 9, BatchSize: 7, TestRows: 3}
		d := read(t, numbered(20, 2), opts)
		const steps = 40
		want := make([][]float32, steps)
		for s := range want {
			x, _, _ := d.Batch(int64(s))
			want[s] = floats(x)
		}
		for s := steps - 1; s >= 0; s-- {
			x, _, _ := d.Batch(int64(s))
			if diff := cmp.Diff(want[s], floats(x)); diff != "" {
				t.Errorf("step %d, backwards (-want +got):\n%s", s, diff)
			}
			x, _, _ = read(t, numbered(20, 2), opts).Batch(int64(s))
			if diff := cmp.Diff(want[s], floats(x)); diff != "" {
				t.Errorf("step %d, alone (-want +got):\n%s", s, diff)
			}
		}
	}
}

func TestBatchGreaterThanData(t *testing.T) {
	d := read(t, numbered(3, 2), Options{Label: Column{Index: 1}, BatchSize: 8})
	x, _, _ := d.Batch(1)
	if diff := cmp.Diff([]float32{2, 0, 1, 2, 0, 1, 2, 0}, floats(x)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBatchOddSteps(t *testing.T) {
	d := read(t, numbered(3, 2), Options{Label: Column{Index: 1}, BatchSize: 2, Shuffle: true})
	for _, step := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if x, y, _ := d.Batch(step); len(x.Data) != 8 || len(y.Data) != 16 {
			t.Errorf("step %d: %d and %d bytes", step, len(x.Data), len(y.Data))
		}
	}
}

func TestBatchAllocates(t *testing.T) {
	d := read(t, numbered(1000, 2), Options{Label: Column{Index: 1}, BatchSize: 10, Shuffle: true})
	step := int64(0)
	if n := testing.AllocsPerRun(90, func() { d.Batch(step); step++ }); n > 0 {
		t.Errorf("a batch within an epoch allocates %v times", n)
	}
}
