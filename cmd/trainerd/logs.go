package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/trainerd/control"
)

func logsCommand() *cli.Command {
	const usual = 100
	return &cli.Command{
		Name: "logs", Usage: "print the newest lines of a run's log", UsageText: "trainerd logs [--lines N] [--follow] [--json] CONFIG|LOGDIR",
		Description: `A run keeps its newest 1000 lines. Those of a run that has ended are where they
were written to: under systemd, journalctl -u UNIT has them.`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Value: usual, Usage: "begin with the newest `N` lines"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print new lines too, until the run ends"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object a line"},
		},
		Action: asking(0, func(c *cli.Context, client *control.Client, _ []string) error {
			if c.Int("lines") < 0 {
				return usagef("logs: --lines is less than 0")
			}
			return client.Logs(c.Context, c.Int("lines"), c.Bool("follow"), func(line []byte) error {
				return printEntry(c.App.Writer, line, c.Bool("json"))
			})
		}),
	}
}

// printEntry prints an entry of a log, for people unless asJSON.
func printEntry(w io.Writer, line []byte, asJSON bool) error {
	text := string(line)
	if !asJSON {
		if readable, err := readable(line); err == nil { // what is not an entry is printed too
			text = readable
		}
		text = terminal.Line(text) // the run may be another user's
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// readable returns an entry of a [slog.JSONHandler] as a line of text.
func readable(line []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", fmt.Errorf("not a JSON object: %w", err)
	}
	var at, level, message string
	var rest strings.Builder
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return "", err
		}
		switch value := plain(raw); key {
		case slog.TimeKey:
			at = value
			if parsed, err := time.Parse(time.RFC3339Nano, value); err == nil {
				at = parsed.Local().Format(time.DateTime)
			}
		case slog.LevelKey:
			level = value
		case slog.MessageKey:
			message = value
		default:
			fmt.Fprintf(&rest, " %v=%s", key, quoted(value))
		}
	}
	if _, err := d.Token(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %-5s %s%s", at, level, message, rest.String()), nil
}

// plain returns a string without its quotes, and other values as they are.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// quoted quotes a value that would not be seen to end.
func quoted(value string) string {
	if value == "" || strings.ContainsAny(value, " \t\n\"") {
		return strconv.Quote(value)
	}
	return value
}
