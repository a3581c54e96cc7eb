package tfevents

import (
	"context"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// AddScalar adds one scalar, in the form of tf.compat.v1.summary.scalar.
// Values are stored as float32. It allocates nothing.
func (w *FileWriter) AddScalar(ctx context.Context, tag string, value float64, step int64) error {
	return w.AddScalarAt(ctx, time.Time{}, tag, value, step)
}

// AddScalarAt is AddScalar with the given time. The zero time means now.
func (w *FileWriter) AddScalarAt(ctx context.Context, t time.Time, tag string, value float64, step int64) error {
	w.mu.Lock()
	err := w.addScalar(ctx, t, tag, float32(value), step)
	w.mu.Unlock() // deferring it would cost as much as the lock
	return err
}

func (w *FileWriter) addScalar(ctx context.Context, t time.Time, tag string, value float32, step int64) error {
	if !w.hasRoom() {
		if err := w.waitForRoom(ctx); err != nil {
			return err
		}
	}
	encoded, err := w.tags.encode(tag)
	if err != nil {
		return err
	}
	var wall float64
	if w.keepsTime(t) {
		wall = w.o.Form.wallTime(t)
	} else {
		wall = w.wallTime(w.eventTime(t))
	}
	start := len(w.active.buf)
	w.active.buf = appendScalar(w.active.buf, wall, step, encoded, value)
	w.added(start, true)
	return nil
}

// wallTime returns the clock's t as an event carries it. Scalars often share it, and the division
// takes a good part of the time that a scalar costs.
func (w *FileWriter) wallTime(t time.Time) float64 {
	if t != w.lastTime {
		w.lastTime, w.lastWall = t, w.o.Form.wallTime(t)
	}
	return w.lastWall
}

// AddSummary adds an event with the current time. In the form TF1, a tag's
// metadata is written only with its first value in each file: readers ignore
// any later metadata.
func (w *FileWriter) AddSummary(ctx context.Context, s *tfpb.Summary, globalStep int64) error {
	return w.AddSummaryAt(ctx, time.Time{}, s, globalStep)
}

// AddSummaryAt is AddSummary with the given time. The zero time means now.
func (w *FileWriter) AddSummaryAt(ctx context.Context, t time.Time, s *tfpb.Summary, globalStep int64) error {
	if err := checkSummary(s); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.admit(ctx, t)
	if err != nil {
		return err
	}
	s, first := w.withoutKnownMetadata(s)
	w.append(&tfpb.Event{WallTime: w.o.Form.wallTime(t), Step: globalStep, What: &tfpb.Event_Summary{Summary: s}}, !first)
	return nil
}

// AddEvent adds e unchanged, including its time. An event with a SessionLog is
// written to the file before AddEvent returns.
func (w *FileWriter) AddEvent(ctx context.Context, e *tfpb.Event) error {
	if err := checkEvent(e); err != nil {
		return err
	}
	w.mu.Lock()
	if _, err := w.admit(ctx, time.Time{}); err != nil {
		w.mu.Unlock()
		return err
	}
	w.append(e, e.GetSummary() != nil && !hasMetadata(e.GetSummary()))
	w.mu.Unlock()
	return w.flushLifecycle(ctx, e.GetSessionLog())
}

// AddSessionLog adds a change of the run's state (START, STOP or CHECKPOINT) and returns when it is in the
// file. CHECKPOINT and STOP, which mean that progress was saved, are also synced, unless the options say
// otherwise.
func (w *FileWriter) AddSessionLog(ctx context.Context, l *tfpb.SessionLog, globalStep int64) error {
	return w.addNow(ctx, &tfpb.Event{Step: globalStep, What: &tfpb.Event_SessionLog{SessionLog: l}})
}

// AddGraph adds an encoded GraphDef, which TensorBoard shows as the run's graph.
func (w *FileWriter) AddGraph(ctx context.Context, graphDef []byte) error {
	return w.addNow(ctx, &tfpb.Event{What: &tfpb.Event_GraphDef{GraphDef: graphDef}})
}

// AddMetaGraph adds an encoded MetaGraphDef.
func (w *FileWriter) AddMetaGraph(ctx context.Context, metaGraphDef []byte, globalStep int64) error {
	return w.addNow(ctx, &tfpb.Event{Step: globalStep, What: &tfpb.Event_MetaGraphDef{MetaGraphDef: metaGraphDef}})
}

// AddRunMetadata adds an encoded RunMetadata, which TensorBoard lists under
// the tag, to colour the graph by time and memory. A tag is for one step only.
func (w *FileWriter) AddRunMetadata(ctx context.Context, tag string, runMetadata []byte, globalStep int64) error {
	return w.addNow(ctx, &tfpb.Event{Step: globalStep, What: &tfpb.Event_TaggedRunMetadata{
		TaggedRunMetadata: &tfpb.TaggedRunMetadata{Tag: tag, RunMetadata: runMetadata},
	}})
}

// addNow adds e with the current time.
func (w *FileWriter) addNow(ctx context.Context, e *tfpb.Event) error {
	if err := checkEvent(e); err != nil {
		return err
	}
	w.mu.Lock()
	now, err := w.admit(ctx, time.Time{})
	if err != nil {
		w.mu.Unlock()
		return err
	}
	e.WallTime = w.o.Form.wallTime(now)
	w.append(e, false)
	w.mu.Unlock()
	return w.flushLifecycle(ctx, e.GetSessionLog())
}

// append encodes e after the events that are already waiting.
func (w *FileWriter) append(e *tfpb.Event, droppable bool) {
	start := len(w.active.buf)
	w.active.buf = appendEvent(w.active.buf, e)
	w.added(start, droppable)
}

func (w *FileWriter) flushLifecycle(ctx context.Context, l *tfpb.SessionLog) error {
	if l == nil {
		return nil
	}
	saved := l.GetStatus() == tfpb.SessionLog_CHECKPOINT || l.GetStatus() == tfpb.SessionLog_STOP
	return w.flush(ctx, w.o.Sync == SyncAlways || saved && w.o.Sync != SyncNever)
}

// withoutKnownMetadata returns s without the metadata that the file already has, and whether s has
// metadata that the file lacks.
func (w *FileWriter) withoutKnownMetadata(s *tfpb.Summary) (out *tfpb.Summary, first bool) {
	if !hasMetadata(s) {
		return s, false
	}
	if w.o.Form != TF1 {
		return s, true
	}
	if w.seen == nil {
		w.seen = make(map[string]struct{})
	}
	out = &tfpb.Summary{Value: make([]*tfpb.Summary_Value, len(s.GetValue()))}
	for i, v := range s.GetValue() {
		out.Value[i] = v
		if v.GetMetadata() == nil {
			continue
		}
		if _, known := w.seen[v.GetTag()]; known {
			out.Value[i] = &tfpb.Summary_Value{Tag: v.Tag, NodeName: v.NodeName, Value: v.Value}
			continue
		}
		w.seen[v.GetTag()] = struct{}{}
		first = true
	}
	return out, first
}

func hasMetadata(s *tfpb.Summary) bool {
	for _, v := range s.GetValue() {
		if v.GetMetadata() != nil {
			return true
		}
	}
	return false
}

// startFile makes the next event the first of a new file.
func (w *FileWriter) startFile(now time.Time) {
	w.active.files = append(w.active.files, fileStart{pos: len(w.active.buf), at: now})
	w.file = fileState{open: true, at: now}
	clear(w.seen)
}

// fileIsFull reports whether the next event belongs in a new file.
func (w *FileWriter) fileIsFull(now time.Time) bool {
	return w.file.bytes > 0 && (w.o.MaxFileSize > 0 && w.file.bytes >= w.o.MaxFileSize ||
		w.o.MaxFileAge > 0 && now.Sub(w.file.at) >= w.o.MaxFileAge)
}

// AddLogMessage adds a log message, which only old programs write and old
// readers print. TensorBoard does not show it; use [summary.Text] instead.
func (w *FileWriter) AddLogMessage(ctx context.Context, level tfpb.LogMessage_Level, message string, globalStep int64) error {
	//lint:ignore SA1019 it is for those who still read them
	what := &tfpb.Event_LogMessage{LogMessage: &tfpb.LogMessage{Level: level, Message: message}}
	return w.addNow(ctx, &tfpb.Event{Step: globalStep, What: what})
}
