package main

import "github.com/trainerd/trainerd/cmd/internal/terminal"

// shown returns s as a cell of a table shows it: quoted if it is empty or would
// break the line or the terminal.
func shown(s string) string { return terminal.Shown(s) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}
