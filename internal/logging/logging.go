// Package logging has what the log of a long-running process needs: a logger that may be
// nil, lines that say what is waited for, and a file that others may cut.
package logging

import "log/slog"

// OrDiscard returns l, or a logger that discards everything for nil.
func OrDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
