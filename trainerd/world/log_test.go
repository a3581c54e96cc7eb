//go:build unix

package world

import (
	"context"
	"log/slog"
)

// A listener reads the log of a run as it is written. Attributes of the logger itself are
// not for it.
type listener func(ctx context.Context, r slog.Record) error

func (l listener) Enabled(context.Context, slog.Level) bool        { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler              { return l }
func (l listener) WithGroup(string) slog.Handler                   { return l }
func (l listener) Handle(ctx context.Context, r slog.Record) error { return l(ctx, r) }

// attrsOf returns the attributes of a line by their keys.
func attrsOf(r slog.Record) map[string]slog.Value {
	attrs := map[string]slog.Value{}
	r.Attrs(func(attr slog.Attr) bool { attrs[attr.Key] = attr.Value; return true })
	return attrs
}
