package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/internal/jsonfloat"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/predict"
)

const predictHelp = `Answers the rows of DATA with the trained model of a logdir (its best checkpoint
by evaluation, else the newest intact one) or a SavedModel that trainerd export
wrote. DATA is what the model was trained with: a table (CSV, JSON lines,
Parquet), TFRecord, IDX, .npy or .npz files, an image or a folder of images; "-" is
a table on stdin. Columns are found by the names in the header, whatever their order;
the label may be there or not, other columns are left out. A table without a
header needs the columns of the training file, with or without the label.

The answer is CSV with a header, a line for each row in the order of DATA: the
column prediction has the name of the class, or the number, and then comes the
probability of each class, probability_NAME. Of images, file comes first, of a table
the columns that --keep names. With --json each line is an object.

A word that the training has not seen counts as none. A missing number counts as
the mean of the training, if the model was trained with data.normalize or with
missing numbers; else it is an error. So is a field that is not what its column
had in training, such as a word among numbers, unless --coerce takes it for
missing, and says how often. Errors name line and column; the first ten are
shown, and nothing is written for rows after the first. With --out the file
appears whole or not at all. Memory does not grow with the number of rows.

EXAMPLES:
   trainerd predict logs/iris new.csv
   trainerd predict iris.toml new.csv --out predictions.csv
   trainerd predict logs/titanic test.csv --keep PassengerId
   cat new.csv | trainerd predict logs/iris - --json`

// dataFlags say how the rows of a command are read.
func dataFlags() []cli.Flag {
	return []cli.Flag{
		checkpointFlag(),
		&cli.StringFlag{Name: "format", Usage: "read DATA as `F`: csv, json, parquet, tfrecord, idx, npy or images (default: what it looks like)"},
		&cli.BoolFlag{Name: "coerce", Usage: "take a field that is not the number or date of its column for missing"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		maxMemoryFlag(),
	}
}

func predictCommand() *cli.Command {
	return &cli.Command{
		Name:        "predict",
		Usage:       "answer the rows of a file with a trained model",
		UsageText:   "trainerd predict [options] CONFIG|LOGDIR|SAVEDMODEL DATA|-",
		Description: predictHelp,
		Flags: append(dataFlags(),
			&cli.StringFlag{Name: "out", Usage: "write the predictions to `FILE` instead of stdout"},
			&cli.StringSliceFlag{Name: "keep", Usage: "write the `COLUMN` of a table before the prediction, by its name or number; may be repeated"},
		),
		Action: func(c *cli.Context) error {
			m, in, err := openRows(c, false)
			if err != nil {
				return err
			}
			defer m.Close()
			defer in.Close()
			if c.String("out") == "" {
				return writePredictions(c, m, in, c.App.Writer)
			}
			return writeOut(c.String("out"), func(w io.Writer) error { return writePredictions(c, m, in, w) })
		},
	}
}

// modelOptions returns which checkpoint of a trained model is used, as flags say.
func modelOptions(c *cli.Context) predict.Options {
	return predict.Options{Checkpoint: c.String("checkpoint"), Logger: slog.New(slog.NewTextHandler(c.App.ErrWriter, nil))}
}

// maxMemoryFlag bounds what a model in this process may hold.
func maxMemoryFlag() cli.Flag {
	return &cli.StringFlag{Name: "max-memory", Usage: "end when a step needs more than `SIZE`, as in 8GiB (default: three quarters of the machine's memory)"}
}

// maxMemory returns the bytes that maxMemoryFlag says, 0 if it is not set.
func maxMemory(c *cli.Context) (int64, error) {
	if !c.IsSet("max-memory") {
		return 0, nil
	}
	n, err := cliargs.Size(c.String("max-memory"))
	if err != nil {
		return 0, usagef("%s: --max-memory: %w", c.Command.Name, err)
	}
	return n, nil
}

// openModel opens the model of a command, which was trained with rows, and returns the
// logdir or SavedModel that it is in.
func openModel(c *cli.Context) (m *predict.Model, path string, err error) {
	if path, err = logdirOf(c.Args().Get(0)); err != nil {
		return nil, "", err
	}
	options := modelOptions(c)
	options.MemoryOption = "--max-memory"
	if options.MaxMemory, err = maxMemory(c); err != nil {
		return nil, "", err
	}
	if m, err = predict.Open(c.Context, path, options); err != nil {
		return nil, "", err
	}
	if m.Schema == nil {
		m.Close()
		return nil, "", &predict.Error{Source: m.Source, Reason: "does not say what its rows are: it was not trained as a model family; run it with trainerd graph run, or trainerd serve"}
	}
	return m, path, nil
}

// openRows opens the model and the data of a command.
func openRows(c *cli.Context, needLabel bool) (*predict.Model, *dataset.Examples, error) {
	if c.NArg() != 2 || c.Args().Get(0) == "" || c.Args().Get(1) == "" {
		return nil, nil, usagef("%s: want CONFIG|LOGDIR|SAVEDMODEL DATA", c.Command.Name)
	}
	format := dataset.Format(c.String("format"))
	known := []dataset.Format{"", dataset.FormatCSV, dataset.FormatJSON, dataset.FormatParquet, dataset.FormatTFRecord, dataset.FormatIDX, dataset.FormatNumPy, dataset.FormatImages}
	if !slices.Contains(known, format) {
		return nil, nil, usagef("%s: --format %s: want csv, json, parquet, tfrecord, idx, npy or images", c.Command.Name, format)
	}
	m, _, err := openModel(c)
	if err != nil {
		return nil, nil, err
	}
	o := dataset.ExamplesOptions{Format: format, NeedLabel: needLabel, NoMissing: !m.FillsMissing(), Labels: c.String("labels"),
		Coerce: c.Bool("coerce"), CoerceOption: "--coerce", Keep: c.StringSlice("keep")}
	name := c.Args().Get(1)
	if name == "-" {
		o.In, name = c.App.Reader, "stdin"
	}
	in, err := dataset.OpenExamples(c.Context, name, m.Schema, o)
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, in, nil
}

func writePredictions(c *cli.Context, m *predict.Model, in *dataset.Examples, out io.Writer) error {
	buffered := bufio.NewWriter(out)
	w := &predictionWriter{kept: in.Kept, classes: m.ClassNames(), named: m.Schema.Label.Vocabulary != nil}
	write := w.csv(buffered, m.Schema.Image != nil)
	if c.Bool("json") {
		write = w.json(buffered)
	}
	if err := m.Stream(c.Context, in, write); err != nil {
		buffered.Flush() // the rows before
		return err
	}
	sayCoerced(c, in)
	return buffered.Flush()
}

// sayCoerced says on stderr what --coerce has taken for missing.
func sayCoerced(c *cli.Context, in *dataset.Examples) {
	if in.Coerced > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%s: fields taken for missing (--coerce): %d, the first: %v\n", c.Command.Name, in.Coerced, in.FirstCoerced)
	}
}

// predictionWriter writes answers.
type predictionWriter struct {
	kept    []string // the names of columns that come first
	classes []string // nil for numbers
	named   bool     // they are words
	headed  bool
}

func formatFloat(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }

// csv returns what writes a line for each row, after a header.
func (p *predictionWriter) csv(out io.Writer, files bool) func(*predict.Row) error {
	w := csv.NewWriter(out)
	var fields []string
	line := func(kept []string, file string, rest ...string) {
		fields = append(fields[:0], kept...)
		if files {
			fields = append(fields, file)
		}
		fields = append(fields, rest...)
	}
	return func(r *predict.Row) error {
		if !p.headed {
			files = files && r.File != "" // arrays and records of images are in no files of their own
			line(p.kept, "file", "prediction")
			for _, name := range p.classes {
				fields = append(fields, "probability_"+name)
			}
			if err := w.Write(fields); err != nil {
				return err
			}
			p.headed = true
		}
		if p.classes == nil {
			line(r.Kept, r.File, formatFloat(r.Value))
		} else {
			line(r.Kept, r.File, p.classes[r.Class])
		}
		for _, v := range r.Probabilities {
			fields = append(fields, formatFloat(v))
		}
		if err := w.Write(fields); err != nil {
			return err
		}
		w.Flush() // into the buffer of out
		return w.Error()
	}
}

// number is one of a prediction, in JSON as a metric is.
type number float32

// MarshalJSON implements [json.Marshaler].
func (n number) MarshalJSON() ([]byte, error) { return jsonfloat.Marshal(float32(n)) }

// json returns what writes an object for each row.
func (p *predictionWriter) json(out io.Writer) func(*predict.Row) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return func(r *predict.Row) error {
		line := struct {
			Kept          map[string]string `json:"kept,omitempty"`
			File          string            `json:"file,omitempty"`
			Prediction    any               `json:"prediction"`
			Probabilities map[string]number `json:"probabilities,omitempty"`
		}{File: filepath.ToSlash(r.File), Prediction: number(r.Value)}
		for i, name := range p.kept {
			if line.Kept == nil {
				line.Kept = make(map[string]string, len(p.kept))
			}
			line.Kept[name] = r.Kept[i]
		}
		if p.classes != nil {
			line.Prediction, line.Probabilities = r.Class, make(map[string]number, len(p.classes))
			if p.named {
				line.Prediction = p.classes[r.Class]
			}
			for i, name := range p.classes {
				line.Probabilities[name] = number(r.Probabilities[i])
			}
		}
		if err := e.Encode(line); err != nil {
			return fmt.Errorf("a prediction cannot be written: %w", err)
		}
		return nil
	}
}
