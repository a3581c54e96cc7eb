package tfevents

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestReaderReadsAllFixtures(t *testing.T) {
	for _, name := range eventstest.EventsFiles(t) {
		if strings.Contains(name, "damaged") {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []*tfpb.Event
		for e, err := range NewReader(bytes.NewReader(file)).Events() {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, e)
		}
		if diff := cmp.Diff(eventstest.Events(t, file), got, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestReaderDamage(t *testing.T) {
	for _, tc := range []struct {
		file   string
		before int // events before the error
		part   string
		after  int // events after it
		err    error
	}{
		{"flip_payload", 3, tfrecord.PartData, 13, tfrecord.ErrChecksum},
		{"flip_payload_crc", 3, tfrecord.PartData, 13, tfrecord.ErrChecksum},
		{"flip_length", 3, tfrecord.PartLength, 0, tfrecord.ErrChecksum},
		{"trunc_mid_payload", 3, tfrecord.PartData, 0, io.ErrUnexpectedEOF},
		{"trunc_mid_length", 3, tfrecord.PartLength, 0, io.ErrUnexpectedEOF},
		{"bad_proto_good_crc", 3, tfrecord.PartEvent, 14, nil},
		{"empty", 0, "", 0, nil},
		{"no_version_event", 16, "", 0, nil},
		{"empty_record", 18, "", 0, nil},
		{"version3", 17, "", 0, nil},
		{"unknown_field", 18, "", 0, nil},
	} {
		t.Run(tc.file, func(t *testing.T) {
			name := "events.out.tfevents.1." + tc.file
			r := NewReader(bytes.NewReader(eventstest.ReadFile(t, "events/damaged/"+name)))
			r.Records.Name = name
			before, after := 0, 0
			var damage *tfrecord.CorruptError
			for _, err := range r.Events() {
				switch {
				case err == nil && damage == nil:
					before++
				case err == nil:
					after++
				case damage != nil || !errors.As(err, &damage):
					t.Fatalf("unexpected error %v", err)
				}
			}
			if before != tc.before || after != tc.after {
				t.Errorf("%d events, damage, %d events; want %d and %d", before, after, tc.before, tc.after)
			}
			if tc.part == "" {
				if damage != nil {
					t.Errorf("error %v, want none", damage)
				}
				return
			}
			if damage == nil || damage.Part != tc.part || damage.Offset != 205 || damage.Name != name {
				t.Fatalf("damage %+v, want part %s at 205", damage, tc.part)
			}
			if tc.err != nil && !errors.Is(damage, tc.err) {
				t.Errorf("error %v, want %v", damage, tc.err)
			}
		})
	}
}

func TestReaderFollowsAWriter(t *testing.T) {
	dir := t.TempDir()
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "h"})
	mustAdd(t, w, 1)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, _ := onlyFile(t, dir)
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := NewReader(f)
	for step := int64(1); step < 5; step++ {
		var got []int64
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if e.GetSummary() != nil {
				got = append(got, e.GetStep())
			}
		}
		if !cmp.Equal(got, []int64{step}) {
			t.Errorf("after step %d: got steps %v", step, got)
		}
		mustAdd(t, w, step+1)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReaderTruncations cuts an events file at every byte: what is whole is
// read, and the cut is told from a clean end.
func TestReaderTruncations(t *testing.T) {
	file := eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost")
	var ends []int
	for _, r := range eventstest.Records(t, file) {
		end := tfrecord.Size(len(r))
		if len(ends) > 0 {
			end += ends[len(ends)-1]
		}
		ends = append(ends, end)
	}
	for cut := range file {
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		clean := cut == 0 || want > 0 && ends[want-1] == cut
		n := 0
		var last error
		for _, err := range NewReader(bytes.NewReader(file[:cut])).Events() {
			if last = err; err == nil {
				n++
			}
		}
		if n != want || clean != (last == nil) || !clean && !errors.Is(last, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %d events, then %v; want %d", cut, n, last, want)
		}
	}
}

// TestReaderFlips flips every bit of an events file: it costs one event at
// most if the reader resyncs, and never goes unnoticed.
func TestReaderFlips(t *testing.T) {
	file := eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost")
	for bit := range len(file) * 8 {
		damaged := bytes.Clone(file)
		damaged[bit/8] ^= 1 << (bit % 8)
		r := NewReader(bytes.NewReader(damaged))
		r.Records.Resync = true
		n, noticed := 0, 0
		for _, err := range r.Events() {
			if err != nil {
				noticed++
			} else {
				n++
			}
		}
		if n != 16 || noticed != 1 {
			t.Fatalf("flip of bit %d: %d events, noticed %d times; want 16 and 1", bit, n, noticed)
		}
	}
}

func TestReaderStopsWhenTheLoopDoes(t *testing.T) {
	file := eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost")
	r := NewReader(bytes.NewReader(file))
	n := 0
	for range r.Events() {
		if n++; n == 5 {
			break
		}
	}
	for _, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 17 {
		t.Errorf("two loops saw %d events, want 17", n)
	}
}

// TestEventsWriterRewrites writes again what each fixture holds: the bytes
// must come out the same, no matter who wrote them first.
func TestEventsWriterRewrites(t *testing.T) {
	for _, name := range eventstest.EventsFiles(t) {
		if strings.Contains(name, "damaged") {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		w := NewEventsWriter(&got, &EventsWriterOptions{Continue: true})
		for e, err := range NewReader(bytes.NewReader(file)).Events() {
			if err != nil {
				t.Fatal(err)
			}
			if err := w.WriteEvent(e); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Bytes(), file) {
			t.Errorf("%s: rewritten file differs", name)
		}
	}
}

func TestEventsWriterFirstEvent(t *testing.T) {
	want := eventstest.ReadFile(t, "events/tf1_reopen/events.out.tfevents.1700000000.goldenhost")
	c := clock{at(1700000000.5)}
	var got bytes.Buffer
	w := NewEventsWriter(&got, &EventsWriterOptions{Now: c.now})
	if err := w.WriteEvent(eventstest.Events(t, want)[1]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n %x, want\n %x", got.Bytes(), want)
	}
}

func TestEventsWriterError(t *testing.T) {
	broken := errors.New("disk full")
	w := NewEventsWriter(&eventstest.FailingWriter{N: 100, Err: broken}, nil)
	for range 3 {
		if err := w.WriteEvent(&tfpb.Event{What: &tfpb.Event_GraphDef{GraphDef: make([]byte, 100)}}); !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
	}
	if err := NewEventsWriter(io.Discard, nil).WriteEvent(nil); err == nil {
		t.Error("nil event: no error")
	}
}

func FuzzReader(f *testing.F) {
	for _, name := range eventstest.EventsFiles(f) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 6000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		defer membound.Check(t, len(file), 256)()
		r := NewReader(bytes.NewReader(file))
		for e, err := range r.Events() {
			if err != nil {
				continue
			}
			// What was read can be written and read again.
			again := NewReader(bytes.NewReader(appendEventRecord(nil, e)))
			got, err := again.Next()
			if err != nil || !proto.Equal(e, got) {
				t.Fatalf("event does not survive being written: %v", err)
			}
		}
	})
}
