package tfevents

import (
	"math"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// maxUnsynced is how many bytes may wait for a sync, whatever the policy says.
const maxUnsynced = 4 << 20

// unsynced holds the records that a power cut may lose: those written since the last sync. After a
// failed sync, the system may have dropped any of them, and still reports success for the next
// sync, so they have to be written again, to another file. The old file may have them, too, so a
// START precedes them, which makes readers drop them there. A START would also drop the other
// summaries at its step, so the summaries of the last durable step are kept here as well.
type unsynced struct {
	records []byte
	waits   bool  // some of them are not durable
	durable bool  // some summaries are
	last    int64 // the highest step of those
	partly  bool  // records lacks some of that step
	heads   HeadScanner
}

func (u *unsynced) add(records []byte) {
	u.records = append(u.records, records...)
	u.waits = u.waits || len(records) > 0
}

// synced records that all records are durable.
func (u *unsynced) synced() {
	var again []byte
	u.each(func(record []byte, head EventHead) {
		isStart := head.Session == tfpb.SessionLog_START
		switch {
		case isStart && u.durable && head.Step <= u.last:
			u.last, u.partly, again = head.Step-1, true, nil
		case head.Kind != "summary":
		case !u.durable || head.Step > u.last:
			u.durable, u.last, u.partly = true, head.Step, false
			again = slices.Clone(record)
		case head.Step == u.last && !u.partly:
			again = append(again, record...)
		}
	})
	if len(again) > maxUnsynced {
		u.partly, again = true, nil
	}
	u.records, u.waits = again, false
}

// again returns what has to be written again after a failed sync. The only changes of the run's
// state among it are STARTs: the calls that added others have failed.
func (u *unsynced) again() (records []byte) {
	if !u.waits {
		return nil
	}
	first := EventHead{Step: math.MaxInt64}
	starts := map[int64]int{} // before the first summary, by their steps
	u.each(func(record []byte, head EventHead) {
		switch isStart := head.Session == tfpb.SessionLog_START; {
		case isStart && first.Kind == "":
			starts[head.Step]++
		case head.Kind == "session_log" && !isStart:
			return
		case head.Kind == "summary" && head.Step < first.Step:
			first = head
		}
		records = append(records, record...)
	})
	if first.Kind == "" {
		return records // which a reader may have twice
	}
	step := first.Step
	if u.durable {
		step = u.last
	}
	if u.durable && u.partly {
		step++
	}
	if starts[step] > 1 {
		return records // the file before was of this kind
	}
	start := appendEvent(nil, &tfpb.Event{WallTime: first.WallTime, Step: step, What: &tfpb.Event_SessionLog{
		SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START},
	}})
	return slices.Concat(start, start, records) // the first START of a run drops nothing in TensorBoard
}

// each calls do with each record and its head.
func (u *unsynced) each(do func(record []byte, head EventHead)) {
	for rest := u.records; len(rest) > 0; rest = rest[recordLen(rest):] {
		record := rest[:recordLen(rest)]
		head, _ := u.heads.Scan(record[tfrecord.HeaderSize : len(record)-tfrecord.FooterSize]) // it was encoded here
		do(record, head)
	}
}
