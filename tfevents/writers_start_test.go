package tfevents

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
)

// tagged returns events of another tag than loss, one a second.
func tagged(tag string, second float64, first, last int64) []*tfpb.Event {
	events := from(second, losses(7, first, last)...)
	for _, e := range events {
		e.GetSummary().GetValue()[0].Tag = tag
	}
	return events
}

// TestStartSparesOtherWriters: a START says what its own writer went back to,
// not what another writer of the same folder, alive meanwhile, has written.
func TestStartSparesOtherWriters(t *testing.T) {
	start := func(second float64, step int64) []*tfpb.Event { return from(second, startAt(step)) }
	rate := func(second float64, first, last int64) []*tfpb.Event { return tagged("rate", second, first, last) }
	lr := func(second float64, first, last int64) []*tfpb.Event { return tagged("lr", second, first, last) }
	for _, tc := range []struct {
		name       string
		files      [][]*tfpb.Event
		loss, rate string
	}{
		{
			"a monitor writes throughout, the program restarts once",
			[][]*tfpb.Event{
				slices.Concat(start(100, 0), rate(101, 1, 60)),
				slices.Concat(start(102, 0), from(103, losses(1, 1, 20)...)),
				slices.Concat(start(130, 11), from(131, losses(2, 11, 30)...)),
			},
			"1-10@1 11-30@2", "1-60@7",
		},
		{
			"both restart",
			[][]*tfpb.Event{
				slices.Concat(start(100, 0), rate(101, 1, 20)),
				slices.Concat(start(102, 0), from(103, losses(1, 1, 20)...)),
				slices.Concat(start(200, 11), rate(201, 11, 40)),
				slices.Concat(start(202, 11), from(203, losses(2, 11, 40)...)),
			},
			"1-10@1 11-40@2", "1-40@7",
		},
		{
			"all restart, and one has not written its rare tag again",
			[][]*tfpb.Event{
				slices.Concat(start(100, 0), rate(101, 5, 5), lr(102, 6, 14), rate(120, 15, 15)),
				slices.Concat(start(102, 0), from(103, losses(1, 1, 20)...)),
				slices.Concat(start(200, 16), lr(201, 16, 60)),
				slices.Concat(start(202, 11), from(203, losses(2, 11, 40)...)),
			},
			"1-10@1 11-40@2", "5-5@7 15-15@7",
		},
		{
			"all restart, and only one says so",
			[][]*tfpb.Event{
				slices.Concat(start(100, 0), rate(101, 5, 5), lr(102, 6, 14), rate(120, 15, 15)),
				slices.Concat(start(102, 0), from(103, losses(1, 1, 20)...)),
				slices.Concat(start(200, 16), lr(201, 16, 60)),
				rate(202, 11, 13),
			},
			"1-15@1", "5-5@7 11-13@7", // nobody else has written this again
		},
		{
			"the clock was set back before the restart",
			[][]*tfpb.Event{
				slices.Concat(start(1000, 0), from(1001, losses(1, 1, 20)...)),
				slices.Concat(start(100, 11), rate(101, 11, 30)),
			},
			"1-10@1", "11-30@7",
		},
		{
			"a file without START follows one whose step was not written again",
			[][]*tfpb.Event{slices.Concat(start(100, 5), from(101, losses(1, 6, 10)...)), rate(201, 5, 8)},
			"6-10@1", "5-8@7",
		},
		{
			"no START, and one begins at 0",
			[][]*tfpb.Event{from(101, losses(1, 1, 10)...), rate(201, 0, 3)},
			"1-10@1", "0-3@7",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys, run := fstest.MapFS{}, Run{Name: "."}
			for i, events := range tc.files {
				name := fmt.Sprintf("events.out.tfevents.%010d.h", i)
				fsys[name] = eventsFile(t, begunAt(events[0].WallTime, events...)...)
				run.Files = append(run.Files, name)
			}
			d := readInMemory(fsys, run, nil)
			for tag, want := range map[string]string{"loss": tc.loss, "rate": tc.rate} {
				if got := ranges(d.Lookup(tag)); got != want {
					t.Errorf("%s: %s, want %s", tag, got, want)
				}
			}
			checkIndex(t, fsys, run)
		})
	}
}
