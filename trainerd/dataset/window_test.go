package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/tfevents/tfexample"
)

// stream is a file of n examples whose feature is their number.
func stream(t *testing.T, n int, zip bool) string {
	t.Helper()
	dir := t.TempDir()
	for part := range 3 { // several files
		var all []example
		for i := part * n / 3; i < (part+1)*n/3; i++ {
			all = append(all, example{"label": tfexample.Int64s(int64(i % 2)), "x": tfexample.Floats(float32(i))})
		}
		data := records(all...)
		if zip {
			data = []byte(zipped(string(data)))
		}
		write(t, dir, fmt.Sprint("part-", part), data)
	}
	return filepath.Join(dir, "part-*")
}

// TestStream checks that each epoch of a stream has every training example
// once, that batches are a function of the step, whatever came before, and that
// test rows are never among them.
func TestStream(t *testing.T) {
	const n, tests, size = 50, 8, 6
	for _, zip := range []bool{false, true} {
		name := stream(t, n, zip)
		for _, buffer := range []int{1, 4, 7, 41, 42, 43, 1000} {
			o := Options{Format: FormatTFRecord, Shuffle: true, Seed: 3, BatchSize: size, ShuffleBuffer: buffer, TestRows: tests}
			d := load(t, name, o)
			if want := (Split{Rows: n, Tests: tests, Shuffled: true, Streamed: true, Seed: 3}); *d.Schema.Split != want {
				t.Errorf("split %+v, want %+v", *d.Schema.Split, want)
			}
			var all []float32
			steps := int64(3 * (n - tests) / size)
			batches := make([][]float32, steps)
			for s := range steps {
				x, y := batch(t, d, s)
				for i := range x {
					if y[i] != int64(x[i])%2 {
						t.Fatalf("example %v has label %d", x[i], y[i])
					}
				}
				batches[s] = x
				all = append(all, x...)
			}
			hold, _, err := d.Test(0, n)
			if err != nil {
				t.Fatal(err)
			}
			held := slices.Clone(floats(hold))
			epochs := slices.Collect(slices.Chunk(all, n-tests))
			for _, epoch := range epochs {
				every := slices.Sorted(slices.Values(append(slices.Clone(epoch), held...)))
				for i, v := range every {
					if v != float32(i) {
						t.Fatalf("buffer %d: an epoch and the test rows are %v", buffer, every)
					}
				}
			}
			if buffer > 1 && slices.Equal(epochs[0], epochs[1]) {
				t.Errorf("buffer %d: two epochs have one order", buffer)
			}
			again := load(t, name, o)
			for _, s := range []int64{5, 20, 3, 4, 19, 0} {
				if s%4 == 0 {
					if _, _, err := again.Test(2, 3); err != nil {
						t.Fatal(err)
					}
				}
				if x, _ := batch(t, again, s); !slices.Equal(x, batches[s]) {
					t.Fatalf("buffer %d, step %d: %v, want %v", buffer, s, x, batches[s])
				}
			}
		}
	}
}

func TestStreamNormalize(t *testing.T) {
	name := stream(t, 30, false)
	o := Options{Format: FormatTFRecord, BatchSize: 27, TestRows: 3, Normalize: NormalizeStandard}
	want, _ := batch(t, load(t, name, o), 0)
	o.ShuffleBuffer = 5
	if got, _ := batch(t, load(t, name, o), 0); !slices.Equal(got, want) {
		t.Errorf("got %v, in memory %v", got, want)
	}
}

// TestStreamChanged checks that a file that is cut while it is used is an error
// of the batch, with its place.
func TestStreamChanged(t *testing.T) {
	name := stream(t, 30, false)
	d := load(t, name, Options{Format: FormatTFRecord, ShuffleBuffer: 2, BatchSize: 5})
	part := strings.Replace(name, "*", "1", 1)
	if err := os.Truncate(part, 0); err != nil {
		t.Fatal(err)
	}
	var err error
	for s := int64(0); s < 6 && err == nil; s++ {
		_, _, err = d.Batch(s)
	}
	if err == nil || !strings.Contains(err.Error(), "part-1: the file has ended, but had 10 records before; do not change the data while a job uses them") {
		t.Errorf("got %v", err)
	}
}
