package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
)

func stateCommand() *cli.Command {
	return &cli.Command{
		Name:      "state",
		Usage:     "show what a directory's checkpoint file says, paths resolved",
		ArgsUsage: "DIR",
		Description: `Exits with 5 where TensorFlow would see no checkpoint (there is no file, or
none that it can parse), and with 3 where it would raise an error.`,
		Flags: []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "name", Value: ckptdir.StateName, Usage: "`FILE` within the directory"}},
		Action: func(c *cli.Context) error {
			a, err := args(c, "DIR")
			if err != nil {
				return err
			}
			s, err := ckptdir.ReadState(a[0], &ckptdir.StateOptions{Name: c.String("name")})
			if err != nil {
				return stateHint(err, a[0])
			}
			if c.Bool("json") {
				return printStateJSON(c.App.Writer, s)
			}
			return printState(c.App.Writer, s)
		},
	}
}

// stateHint adds what to do about a state file.
func stateHint(err error, dir string) error {
	if errors.Is(err, ckptdir.ErrState) || errors.Is(err, ckptdir.ErrEmptyState) {
		return fmt.Errorf("%w; edit the file, or remove it and see `ckpt ls %s`", err, dir)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s is not a directory: %w", dir, fs.ErrNotExist)
	}
	return fmt.Errorf("%w; `ckpt ls %s` lists the checkpoints there", err, dir)
}

// stateJSON has TensorFlow's field names. A number that JSON lacks is the text
// that protobuf's JSON has for it.
type stateJSON struct {
	Model         string   `json:"model_checkpoint_path"`
	All           []string `json:"all_model_checkpoint_paths"`
	Timestamps    []double `json:"all_model_checkpoint_timestamps,omitempty"`
	LastPreserved *double  `json:"last_preserved_timestamp,omitempty"`
}

// double is a number that JSON may lack, such as NaN; it is written as in a
// manifest.
type double = manifest.Metric

func stateToJSON(s *tfpb.CheckpointState) stateJSON {
	out := stateJSON{Model: s.ModelCheckpointPath, All: append([]string{}, s.AllModelCheckpointPaths...)}
	for _, t := range s.AllModelCheckpointTimestamps {
		out.Timestamps = append(out.Timestamps, double(t))
	}
	if t := double(s.LastPreservedTimestamp); math.Float64bits(float64(t)) != 0 { // -0 is there
		out.LastPreserved = &t
	}
	return out
}

func printStateJSON(w io.Writer, s *tfpb.CheckpointState) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(stateToJSON(s))
}

func printState(w io.Writer, s *tfpb.CheckpointState) error {
	missing := func(prefix string) string {
		if layout.Exists(prefix) {
			return ""
		}
		return "  (missing)"
	}
	_, err := fmt.Fprintf(w, "current:  %s%s\n", printable(s.ModelCheckpointPath), missing(s.ModelCheckpointPath))
	for i, p := range s.AllModelCheckpointPaths {
		stamp := ""
		if i < len(s.AllModelCheckpointTimestamps) {
			stamp = "  saved " + strconv.FormatFloat(s.AllModelCheckpointTimestamps[i], 'f', -1, 64)
		}
		_, err = fmt.Fprintf(w, "kept:     %s%s%s\n", printable(p), stamp, missing(p))
	}
	if math.Float64bits(s.LastPreservedTimestamp) != 0 {
		_, err = fmt.Fprintf(w, "last preserved: %s\n", strconv.FormatFloat(s.LastPreservedTimestamp, 'f', -1, 64))
	}
	return err
}

func latestCommand() *cli.Command {
	return &cli.Command{
		Name:      "latest",
		Usage:     "print the prefix of the current checkpoint of a directory",
		ArgsUsage: "DIR",
		Flags:     []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			a, err := args(c, "DIR")
			if err != nil {
				return err
			}
			prefix, err := ckptdir.LatestCheckpoint(a[0], nil)
			if err != nil {
				return stateHint(err, a[0])
			}
			if c.Bool("json") {
				return printObject(c.App.Writer, latestJSON{prefix})
			}
			_, err = fmt.Fprintln(c.App.Writer, prefix)
			return err
		},
	}
}

// latestJSON is what `ckpt latest --json` prints.
type latestJSON struct {
	Prefix string `json:"prefix"`
}
