package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

const mapHelp = `

--map takes a file of rules, or the name of a ready map, that rename tensors,
change the order of their dimensions, join and split them; ` + "`ckpt maps`" + ` lists the
ready ones and doc/formats/maps.md explains them. If a tensor is left over, no
copy is made and the exit code is 3, unless --rest allows it. A mapped copy has no
graph of objects. --like gives it, or any copy, the keys, types and graph of
another checkpoint, whose names are matched with those of the copy: so
values of other programs, or of TensorFlow 1, become a checkpoint that
tf.train.Checkpoint restores. --objects makes a graph of the names themselves.`

// mapFlags are those of the commands that write tensors under other names.
func mapFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "map", Usage: "change tensors by the rules in `FILE`, or by the ready map of that name"},
		&cli.Int64Flag{Name: "heads", Usage: "what heads means in shapes of the map: `N` heads of the attention layers", DefaultText: "as the map says"},
		&cli.StringFlag{Name: "rest", Usage: "of tensors that no rule of the map matches, or that --like does not have: `WHAT` is error, keep or drop", DefaultText: "as the map says, else error"},
		&cli.StringFlag{Name: "like", Usage: "write the keys, types and object graph of the checkpoint `PREFIX`; in files of Keras, put variables where the file has them"},
		&cli.StringFlag{Name: "missing", Value: "error", Usage: "of tensors that only --like has: `WHAT` is error, or template, to take its values; of math also skip and zero"},
		&cli.BoolFlag{Name: "objects", Usage: "write names as paths of objects, for tf.train.Checkpoint"},
	}
}

// openMap opens the map of --map, nil where there is none.
func openMap(c *cli.Context) (*mapping.Map, error) {
	if !c.IsSet("map") {
		if c.IsSet("heads") {
			return nil, usagef("--heads is about --map")
		}
		if c.IsSet("rest") && !c.IsSet("like") {
			return nil, usagef("--rest is about --map and --like")
		}
		return nil, nil
	}
	if c.IsSet("names") && c.Command.Name != "plan" {
		return nil, usagef("a map says which names it is about; leave --names out")
	}
	m, err := mapping.Open(c.String("map"))
	if err != nil {
		return nil, err
	}
	if c.IsSet("rest") {
		m.Rest = mapping.Rest(c.String("rest"))
	}
	if n := c.Int64("heads"); c.IsSet("heads") {
		if n < 1 {
			return nil, usagef("--heads takes a number from 1 on, not %d", n)
		}
		m.SetHeads(n)
	}
	if !m.Rest.Valid() {
		return nil, usagef("--rest takes error, keep or drop, not %q", c.String("rest"))
	}
	return m, nil
}

// applyMap applies --map, and says which rules were of no use.
func applyMap(c *cli.Context, s *rewrite.Source) error {
	m, err := openMap(c)
	if err != nil || m == nil {
		return err
	}
	result, err := s.Map(m)
	if left := new(mapping.LeftError); errors.As(err, &left) {
		return fmt.Errorf("%w; --rest keep or --rest drop allows it", err)
	}
	if err != nil {
		return err
	}
	if _, ready := mapping.Ready(c.String("map")); !ready {
		for _, rule := range result.Unused {
			fmt.Fprintf(c.App.ErrWriter, "map %s: %s matches no tensor\n", c.String("map"), rule)
		}
	}
	if n := len(result.Dropped); n > 0 {
		fmt.Fprintf(c.App.ErrWriter, "map %s: %d tensors, %d dropped\n", c.String("map"), len(result.Outputs), n)
	}
	return nil
}

// giveForm applies --like and --objects. What it returns keeps the template open
// until the copy is written.
func giveForm(c *cli.Context, s *rewrite.Source, to string) (func() error, error) {
	done := func() error { return nil }
	if err := checkLike(c); err != nil {
		return done, err
	}
	if isKeras(to) {
		return fitKeras(c, s)
	}
	if c.Bool("objects") && c.IsSet("like") {
		return done, usagef("--like has a graph of objects; leave --objects out")
	}
	if c.Bool("objects") {
		return done, s.AddObjects()
	}
	if !c.IsSet("like") {
		return done, nil
	}
	template, _, err := openSource(c.String("like"))
	if err != nil {
		return done, err
	}
	return template.Close, likeTemplate(c, s, template)
}

// checkLike refuses what --rest and --missing cannot mean.
func checkLike(c *cli.Context) error {
	missing, rest := c.String("missing"), mapping.Rest(c.String("rest"))
	switch {
	case c.IsSet("rest") && !rest.Valid():
		return usagef("--rest takes error, keep or drop, not %q", rest)
	case c.Command.Name == "math": // its --missing is also about the operands
		return nil
	case missing != "error" && missing != "template":
		return usagef("--missing takes error or template, not %q", missing)
	case c.IsSet("missing") && !c.IsSet("like"):
		return usagef("--missing is about --like")
	}
	return nil
}

// fitKeras gives tensors the names by which places are found in files of Keras and, where some may
// be missing or left over, the places.
func fitKeras(c *cli.Context, s *rewrite.Source) (func() error, error) {
	none := func() error { return nil }
	if err := useKerasNames(c, s); err != nil {
		return none, err
	}
	o := keras.FitOptions{DropRest: c.String("rest") == string(mapping.RestDrop), KeepMissing: c.String("missing") == "template"}
	if !c.IsSet("like") || o == (keras.FitOptions{}) {
		return none, nil // writing finds the places
	}
	result, done, err := s.FitKeras(c.String("like"), o)
	if err != nil {
		return none, withNext(c, err)
	}
	if err := sayKept(c, result); err != nil {
		return none, errors.Join(err, done())
	}
	return done, nil
}

// sayKept says how many values are those of --like, and refuses a result that would be
// nothing but a copy of it.
func sayKept(c *cli.Context, result *rewrite.LikeResult) error {
	switch n := len(result.Kept); {
	case n > 0 && result.Used == 0:
		return fmt.Errorf("%w: no tensor has a place in %s", ckptfmt.ErrNotFound, c.String("like"))
	case n > 0:
		fmt.Fprintf(c.App.ErrWriter, "%d tensors have the values of %s\n", n, c.String("like"))
	}
	return nil
}

// isKeras reports whether a file is written as Keras does, which has places for
// variables: those of --like are used then.
func isKeras(to string) bool {
	f := rewrite.FormatOf(to)
	return f == rewrite.Keras || f == rewrite.KerasWeights || f == rewrite.KerasSharded
}

// kerasTemplate returns the file of Keras that --like names.
func kerasTemplate(c *cli.Context, to string) string {
	if !isKeras(to) {
		return ""
	}
	return c.String("like")
}

// useKerasNames gives a checkpoint of a Keras model the names by which places are
// found in Keras' files, unless others were asked for.
func useKerasNames(c *cli.Context, s *rewrite.Source) error {
	if c.IsSet("names") || c.IsSet("map") || c.IsSet("rename") {
		return nil
	}
	return s.UseNames(names.KerasFile)
}

func likeTemplate(c *cli.Context, s, template *rewrite.Source) error {
	result, err := s.Like(template, rewrite.LikeOptions{KeepMissing: c.String("missing") == "template"})
	if missing := new(rewrite.MissingError); errors.As(err, &missing) {
		return fmt.Errorf("%w; --missing template takes its values", err)
	}
	if err != nil {
		return err
	}
	if result.Prefix != "" {
		fmt.Fprintf(c.App.ErrWriter, "%s was taken off the names, which %s has without\n", result.Prefix, c.String("like"))
	}
	if result.Added != "" {
		fmt.Fprintf(c.App.ErrWriter, "%s was put before the names, as %s has them\n", result.Added, c.String("like"))
	}
	if err := sayKept(c, result); err != nil {
		return err
	}
	if len(result.Left) == 0 || c.String("rest") == string(mapping.RestDrop) {
		return nil
	}
	const most = 5
	return leftError{fmt.Errorf("%d tensors have no place in %s: %s; --rest drop allows it",
		len(result.Left), c.String("like"), strings.Join(result.Left[:min(most, len(result.Left))], ", "))}
}

// leftError says that tensors would be lost.
type leftError struct{ error }

func mapsCommand() *cli.Command {
	return &cli.Command{
		Name:      "maps",
		Usage:     "list the ready maps of names and layouts, or print one",
		ArgsUsage: "[NAME]",
		Description: `A printed map is a start for a map of your own, for --map of cp, convert, avg, ema
and plan, and for map in [warm_start] of a job.`,
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("maps takes a NAME; `ckpt maps` lists them")
			}
			if name := c.Args().First(); name != "" {
				text, ok := mapping.Ready(name)
				if !ok {
					return usagef("there is no ready map %q; `ckpt maps` lists them", name)
				}
				_, err := c.App.Writer.Write(text)
				return err
			}
			list, err := mapping.ReadyNames()
			if err != nil {
				return err
			}
			t := terminal.NewTable("MAP", "WHAT IT DOES")
			for _, m := range list {
				t.Add(m[0], m[1])
			}
			return t.Print(c.App.Writer, terminal.StyleFor(c.App.Writer))
		},
	}
}
