package tfevents

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestAddScalarAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	w := newTestWriter(t, t.TempDir(), nil)
	tags := make([]string, 200) // more than are remembered
	for i := range tags {
		tags[i] = fmt.Sprintf("layer%d/loss", i)
	}
	step := int64(0)
	add := func() {
		if err := w.AddScalar(ctx, tags[step%int64(len(tags))], 0.5, step); err != nil {
			t.Fatal(err)
		}
		step++
	}
	for range 20_000 { // the buffers grow to their size
		add()
	}
	if n := testing.AllocsPerRun(2000, add); n != 0 {
		t.Errorf("AddScalar allocates %v times", n)
	}
}

// TestTagCache adds tags that differ in little, in an order that makes them
// take each other's places.
func TestTagCache(t *testing.T) {
	if got, err := new(tagCache).encode(""); err != nil || !bytes.Equal(got, appendScalarTag(nil, "")) {
		t.Errorf("no tag: %x, %v", got, err)
	}
	var cache tagCache
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		tag := strings.Repeat("a", random.IntN(4)) + strings.Repeat("é", random.IntN(3)) + strings.Repeat("b", random.IntN(200))
		got, err := cache.encode(tag)
		if want := appendScalarTag(nil, tag); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("tag %q: got %x, %v, want %x", tag, got, err, want)
		}
		if _, err := cache.encode(tag + "\xff"); err == nil {
			t.Fatalf("tag %q with a byte that is no UTF-8: no error", tag)
		}
	}
}

// scalarRecord is a record as a FileWriter writes that of a scalar.
func scalarRecord(wall float64, step int64, tag string, v float32) []byte {
	b := appendScalar(nil, wall, step, appendScalarTag(nil, tag), v)
	tfrecord.Sum(b)
	return b
}

func TestScalarRecordEqualsMessage(t *testing.T) {
	for _, wall := range []float64{0, math.Copysign(0, -1), 1700000000.5} {
		for _, step := range []int64{0, 1, -1, 1 << 53, math.MaxInt64, math.MinInt64} {
			for _, tag := range []string{"", "a", strings.Repeat("long/", 100)} {
				for _, v := range []float32{0, 1.5, float32(math.NaN()), float32(math.Inf(-1))} {
					want := appendEventRecord(nil, &tfpb.Event{WallTime: wall, Step: step, What: &tfpb.Event_Summary{
						Summary: summary.New(summaryv1.Scalar(tag, float64(v))),
					}})
					if got := scalarRecord(wall, step, tag, v); !bytes.Equal(got, want) {
						t.Fatalf("wall %v step %d tag %q value %v:\n got %x\nwant %x", wall, step, tag, v, got, want)
					}
				}
			}
		}
	}
}

func BenchmarkAddScalar(b *testing.B) {
	for name, t := range map[string]time.Time{"now": {}, "given time": time.Unix(1700000000, 0)} {
		b.Run(name, func(b *testing.B) {
			w := newTestWriter(b, b.TempDir(), nil)
			ctx := context.Background()
			step := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.AddScalarAt(ctx, t, "train/loss", 0.5, step); err != nil {
					b.Fatal(err)
				}
				step++
			}
		})
	}
}
