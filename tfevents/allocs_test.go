package tfevents

import (
	"bytes"
	"testing"

	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// What is done for each record or event of a file allocates no more than this.
func TestAllocationCeilings(t *testing.T) {
	const n = 1000
	var events, records []byte
	for range n {
		e, err := NewReader(bytes.NewReader(eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost"))).Next()
		if err != nil {
			t.Fatal(err)
		}
		events = appendEventRecord(events, e)
		records = tfrecord.Append(records, []byte("some data of a record"))
	}
	for name, tt := range map[string]struct {
		perRecord float64
		read      func()
	}{
		"records": {0.02, func() {
			r := tfrecord.NewReader(bytes.NewReader(records))
			for _, err := r.Next(); err == nil; _, err = r.Next() {
				continue
			}
		}},
		"events": {6, func() {
			for _, err := range NewReader(bytes.NewReader(events)).Events() {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		if got := testing.AllocsPerRun(5, tt.read) / n; got > tt.perRecord {
			t.Errorf("%s: %.3f allocations each; want at most %v", name, got, tt.perRecord)
		} else {
			t.Logf("%s: %.3f allocations each", name, got)
		}
	}
}
