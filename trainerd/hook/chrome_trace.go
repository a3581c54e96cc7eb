package hook

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// traceEvent is one event of Chrome's trace format.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // "M" names a process, "X" is something with a duration
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Start    int64          `json:"ts"` // microseconds
	Duration int64          `json:"dur"`
	Args     map[string]any `json:"args,omitempty"`
}

// chromeTrace returns the ops of a step as JSON for about:tracing, laid out as
// TensorFlow's timeline is: a process for each device, and in it as many rows
// as ops ran at the same time.
func chromeTrace(stats *tfpb.StepStats) ([]byte, error) {
	var list []traceEvent
	for pid, dev := range stats.GetDevStats() {
		list = append(list, traceEvent{Name: "process_name", Phase: "M", Process: pid, Args: map[string]any{"name": dev.GetDevice() + " Compute"}})
		list = append(list, deviceTrace(pid, dev.GetNodeStats())...)
	}
	return json.Marshal(map[string]any{"traceEvents": list})
}

// deviceTrace returns the ops of one device, by their start.
func deviceTrace(pid int, nodes []*tfpb.NodeExecStats) []traceEvent {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b *tfpb.NodeExecStats) int { return cmp.Compare(a.GetAllStartMicros(), b.GetAllStartMicros()) })
	var free []int64 // when each row is free again
	var list []traceEvent
	for _, n := range nodes {
		start, end := n.GetAllStartMicros(), n.GetAllStartMicros()+n.GetAllEndRelMicros()
		row := slices.IndexFunc(free, func(at int64) bool { return at <= start })
		if row < 0 {
			row = len(free)
			free = append(free, 0)
		}
		free[row] = end
		op := opOfLabel(n.GetTimelineLabel())
		list = append(list, traceEvent{Name: op, Category: "Op", Phase: "X", Process: pid, Thread: row, Start: start,
			Duration: end - start, Args: map[string]any{"name": n.GetNodeName(), "op": op}})
	}
	return list
}

// opOfLabel returns the op of a label, which is of the form "name = Op(inputs)".
func opOfLabel(label string) string {
	if _, call, ok := strings.Cut(label, " = "); ok {
		op, _, _ := strings.Cut(call, "(")
		return op
	}
	return "unknown"
}
