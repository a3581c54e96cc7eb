// Package slogevents writes the numbers in log records to events files.
package slogevents

import (
	"context"
	"log/slog"

	"github.com/trainerd/trainerd/tfevents"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// DefaultStepKey is the attribute from which a Handler takes the step.
const DefaultStepKey = "step"

// Handler is a [slog.Handler] that turns the numbers in log records into
// scalars: each attribute with an integer, a float or a duration (in seconds)
// becomes a scalar whose tag is the names of the attribute's groups and its
// key, joined with slashes. The step comes from the attribute StepKey; a
// record without it gives no scalars.
//
//	log := slog.New(&slogevents.Handler{Writer: w, Next: slog.Default().Handler()})
//	log.Info("trained", "step", step, slog.Group("train", "loss", loss))
type Handler struct {
	Writer  *tfevents.FileWriter
	StepKey string       // "" means DefaultStepKey; it is never in a group
	Next    slog.Handler // also gets every record; may be nil

	prefix string       // names of the open groups, each with a slash
	known  []taggedAttr // added by WithAttrs
}

// taggedAttr is an attribute and the names of the groups that it is in.
type taggedAttr struct {
	prefix string
	attr   slog.Attr
}

// Enabled reports true: numbers are reported whatever the level of their record.
func (h *Handler) Enabled(context.Context, slog.Level) bool { return true }

// Handle adds the record's numbers, and passes the record to Next if that is enabled for its level.
// The error may come from either.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	c := scalarCollector{stepKey: h.StepKey}
	if c.stepKey == "" {
		c.stepKey = DefaultStepKey
	}
	for _, k := range h.known {
		c.add(k.prefix, k.attr)
	}
	r.Attrs(func(a slog.Attr) bool {
		c.add(h.prefix, a)
		return true
	})
	if c.hasStep && len(c.values) > 0 {
		if err := h.Writer.AddSummaryAt(ctx, r.Time, summary.New(c.values...), c.step); err != nil {
			return err
		}
	}
	if h.Next == nil || !h.Next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Next.Handle(ctx, r)
}

// WithAttrs returns a handler whose records all have the attributes.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.known = h.known[:len(h.known):len(h.known)]
	for _, a := range attrs {
		with.known = append(with.known, taggedAttr{h.prefix, a})
	}
	if h.Next != nil {
		with.Next = h.Next.WithAttrs(attrs)
	}
	return &with
}

// WithGroup returns a handler that puts later attributes into a group.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.prefix += name + "/"
	if h.Next != nil {
		with.Next = h.Next.WithGroup(name)
	}
	return &with
}

// scalarCollector gathers the numbers of one record.
type scalarCollector struct {
	stepKey string
	step    int64
	hasStep bool
	values  []*tfpb.Summary_Value
}

func (c *scalarCollector) add(prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if prefix == "" && a.Key == c.stepKey && (v.Kind() == slog.KindInt64 || v.Kind() == slog.KindUint64) {
		c.step, c.hasStep = stepOf(v), true
		return
	}
	tag := prefix + a.Key
	switch v.Kind() {
	case slog.KindGroup:
		if a.Key != "" { // a group without a name is part of what is around it
			prefix += a.Key + "/"
		}
		for _, member := range v.Group() {
			c.add(prefix, member)
		}
	case slog.KindInt64:
		c.values = append(c.values, summaryv1.Scalar(tag, float64(v.Int64())))
	case slog.KindUint64:
		c.values = append(c.values, summaryv1.Scalar(tag, float64(v.Uint64())))
	case slog.KindFloat64:
		c.values = append(c.values, summaryv1.Scalar(tag, v.Float64()))
	case slog.KindDuration:
		c.values = append(c.values, summaryv1.Scalar(tag, v.Duration().Seconds()))
	}
}

func stepOf(v slog.Value) int64 {
	if v.Kind() == slog.KindUint64 {
		return int64(v.Uint64())
	}
	return v.Int64()
}
