package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print scalars, or what other plugins show, as CSV, JSON or Parquet",
		ArgsUsage: "PATH...",
		Description: "The formats csv, json and parquet have a row for each point: run, tag, step, wall_time\n" +
			"and value. wide is CSV with a row for each step of a run and a column for each tag;\n" +
			"a tag that is named like another column gets a number, as in \"step (2)\".\n\n" +
			"--plugin histograms has a row for each bucket of a histogram, text one for each\n" +
			"text, pr_curves one for each threshold, mesh one for each vertex, face and color,\n" +
			"hparams one for each hyperparameter of a run or, with wide, one for each run with its\n" +
			"last metrics. images and audio are written to RUN/TAG/STEP-N.png below the directory\n" +
			"of --files; the rows name them. all has the rows of every plugin in one table, with\n" +
			"a column plugin; what a plugin has no column for is empty.",
		Flags: []cli.Flag{
			formatFlag("csv, wide, json or parquet", exportNames...),
			&cli.BoolFlag{Name: "wide", Usage: "with csv: a row for each step, a column for each tag"},
			&clidoc.Choice{
				StringFlag: &cli.StringFlag{Name: "plugin", Value: summary.PluginScalars, Usage: "print what `PLUGIN` of TensorBoard shows: " + strings.Join(exportPlugins, ", ")},
				Values:     exportPlugins,
			},
			&cli.StringFlag{Name: "files", Usage: "write images and audio below `DIR`; no file is overwritten"},
			jsonFlag(),
			outputFlag(),
			runFlag(),
			tagFlag(),
			purgeFlag(),
		},
		Action: export,
	}
}

func formatFlag(usage string, values ...string) cli.Flag {
	return &clidoc.Choice{
		StringFlag: &cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: values[0], Usage: usage},
		Values:     values,
	}
}

// formatOf returns the format that a command is to print; --json is short for
// one of them.
func formatOf(c *cli.Context) (string, error) {
	format := c.String("format")
	if !c.Bool("json") {
		return format, nil
	}
	if c.IsSet("format") && format != "json" {
		return "", usagef("%s: --json and --format %s exclude each other", c.Command.Name, format)
	}
	return "json", nil
}

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, which must not exist, instead of the standard output"}
}

// toOutput calls print with what --output says.
func toOutput(c *cli.Context, print func(io.Writer) error) error {
	name := c.String("output")
	if name == "" {
		return print(c.App.Writer)
	}
	return createFile(name, print)
}

var exportNames = []string{"csv", "wide", "json", "parquet"}

// exportPlugins are those that can be exported, in the order of the help.
var exportPlugins = []string{
	summary.PluginScalars, summary.PluginHistograms, summary.PluginText, summary.PluginImages, summary.PluginAudio,
	summary.PluginPRCurves, summary.PluginMesh, summary.PluginHParams, allPlugins,
}

// exportFormat returns the format that the command line asks for.
func exportFormat(c *cli.Context) (string, error) {
	format, err := formatOf(c)
	if err != nil {
		return "", err
	}
	plugin := c.String("plugin")
	if c.Bool("wide") {
		if format == "json" || format == "parquet" {
			return "", usagef("export: --wide is a form of csv, not of %s", format)
		}
		format = "wide"
	}
	needsFiles := plugin == summary.PluginImages || plugin == summary.PluginAudio
	switch {
	case !slices.Contains(exportNames, format):
		return "", usagef("export: --format %s: want csv, wide, json or parquet", format)
	case !slices.Contains(exportPlugins, plugin):
		return "", usagef("export: --plugin %s: want %s", plugin, strings.Join(exportPlugins, ", "))
	case format == "wide" && plugin != summary.PluginScalars && plugin != summary.PluginHParams:
		return "", usagef("export: wide is a format of scalars and of hparams, not of %s", plugin)
	case needsFiles && c.String("files") == "":
		return "", usagef("export: %s are written to files: name a directory with --files DIR", plugin)
	case !needsFiles && plugin != allPlugins && c.String("files") != "":
		return "", usagef("export: --files is for images, audio and all, not for %s", plugin)
	case format == "parquet" && c.String("output") == "" && screenOf(c).isTerminal:
		return "", usagef("export: Parquet is binary: write it to a file with --output FILE")
	}
	return format, nil
}

func export(c *cli.Context) error {
	garbage.CollectLate()
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	format, err := exportFormat(c)
	if err != nil {
		return err
	}
	report := newReporter(c)
	s, err := newSelection(c, args, report)
	if err != nil {
		return err
	}
	if s.isEmpty() && report.count == 0 {
		return fmt.Errorf("%w: no %s in %s match", errNothing, s.plugin, strings.Join(args, ", "))
	}
	defer s.files.files.discard()
	err = toOutput(c, func(w io.Writer) error {
		if err := s.export(&untilInterrupted{c.Context, w}, format); err != nil {
			return err
		}
		return s.files.files.publish()
	})
	return cmp.Or(err, report.result())
}

func (s *selection) export(w io.Writer, format string) error {
	var err error
	switch {
	case format == "wide" && s.plugin == summary.PluginHParams:
		err = s.exportTrials(w)
	case format == "wide":
		err = s.exportWide(w)
	case s.plugin == allPlugins:
		err = printRows(w, format, s.everything())
	default:
		err = exporterFor(s.plugin).print(s, w, format)
	}
	return cmp.Or(s.err, err)
}

// scalars reads the points that the flags of a command select.
func scalars(c *cli.Context, paths []string, report *reporter) ([]scalarPoint, error) {
	s, err := newSelection(c, paths, report)
	if err != nil {
		return nil, err
	}
	return slices.AppendSeq([]scalarPoint{}, s.scalars()), nil
}

// newSelection reads the runs that the flags of a command select.
func newSelection(c *cli.Context, paths []string, report *reporter) (*selection, error) {
	mode, err := purgeMode(c)
	if err != nil {
		return nil, err
	}
	tags, err := selected(c, "tag")
	if err != nil {
		return nil, err
	}
	s, err := openSource(c, paths...)
	if err != nil {
		return nil, err
	}
	views, err := s.views(s.runs, mode, report)
	if err != nil {
		return nil, err
	}
	plugin := cmp.Or(c.String("plugin"), summary.PluginScalars)
	return &selection{views: views, plugin: plugin, tags: tags, report: report, files: &fileTree{dir: c.String("files"), used: make(map[string]int)}}, nil
}

// untilInterrupted is a writer until the command is interrupted.
type untilInterrupted struct {
	ctx context.Context
	w   io.Writer
}

func (u *untilInterrupted) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}
