package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/predict"
)

const evalHelp = `Compares the answers of a trained model with the labels of DATA, which is read
as trainerd predict reads it, or without DATA with those of the rows that the run
has kept for testing. Of classes it reports the accuracy next to that of
always answering the most frequent class, the cross entropy, the area under the
ROC curve (of more than two classes the mean over each against the others) and
the confusion matrix; of numbers R2, and RMSE and MAE next to the RMSE of always
answering the mean. Rows of a table without a label are left out and counted.

EXAMPLES:
   trainerd eval logs/iris
   trainerd eval logs/iris test.csv
   trainerd eval logs/iris test.csv --json | jq .accuracy`

func evalCommand() *cli.Command {
	return &cli.Command{
		Name:        "eval",
		Usage:       "compare a trained model with the labels of a file",
		UsageText:   "trainerd eval [options] CONFIG|LOGDIR|SAVEDMODEL DATA|- | CONFIG|LOGDIR",
		Description: evalHelp,
		Flags:       append(dataFlags(), &cli.StringFlag{Name: "labels", Usage: "take the labels of IDX data from `FILE`"}),
		Action: func(c *cli.Context) error {
			read := evalFile
			if c.NArg() == 1 {
				read = evalTestPart
			}
			score, err := read(c)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				e := json.NewEncoder(c.App.Writer)
				e.SetEscapeHTML(false)
				return e.Encode(score)
			}
			return writeScore(c.App.Writer, score)
		},
	}
}

// evalFile compares a model with the labels of a file.
func evalFile(c *cli.Context) (*predict.Score, error) {
	m, in, err := openRows(c, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	defer in.Close()
	s := predict.NewScorer(m.ClassNames())
	unlabelled := 0
	err = m.Stream(c.Context, in, func(r *predict.Row) error {
		if math.IsNaN(r.Label) {
			unlabelled++
			return nil
		}
		s.Add(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sayCoerced(c, in)
	score, err := s.Score()
	if errors.Is(err, predict.ErrNoRows) {
		return nil, &dataset.Error{File: c.Args().Get(1), Reason: err.Error()}
	}
	if err == nil {
		score.Unlabelled = unlabelled
	}
	return score, err
}

// evalTestPart compares a model with the labels of the rows that its run kept for testing.
func evalTestPart(c *cli.Context) (*predict.Score, error) {
	for _, flag := range []string{"format", "coerce", "labels"} {
		if c.IsSet(flag) {
			return nil, usagef("eval: --%s is for DATA; without it the test rows of the run are read as its config says", flag)
		}
	}
	m, logdir, err := openModel(c)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	d, err := daemon.TestPart(c.Context, logdir, m.Source, m.Schema)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s := predict.NewScorer(m.ClassNames())
	if err := m.StreamTest(c.Context, d, func(r *predict.Row) error { s.Add(r); return nil }); err != nil {
		return nil, err
	}
	return s.Score()
}

// writeScore writes a Score for people.
func writeScore(out io.Writer, s *predict.Score) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, v *float64, about string) {
		if v == nil {
			return
		}
		fmt.Fprintf(t, "%s\t%.4g", name, *v)
		if about != "" {
			fmt.Fprintf(t, "\t%s", about)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "rows\t%d", s.Rows)
	if s.Unlabelled > 0 {
		fmt.Fprintf(t, "\t%d without a label are left out", s.Unlabelled)
	}
	fmt.Fprintln(t)
	if s.Classes == nil {
		row("R2", s.R2, "1 is perfect, 0 is the mean of these labels")
		row("RMSE", s.RMSE, fmt.Sprintf("the mean of these labels: %.4g", *s.Baseline))
		row("MAE", s.MAE, "")
		row("MSE", s.MSE, "")
		return t.Flush()
	}
	row("accuracy", s.Accuracy, fmt.Sprintf("the most frequent class: %.4g", *s.Baseline))
	row("AUC", s.AUC, "")
	row("cross entropy", s.Loss, "")
	if err := t.Flush(); err != nil {
		return err
	}
	return writeConfusion(out, s)
}

// widestConfusion is the number of classes up to which the matrix is written.
const widestConfusion = 20

func writeConfusion(out io.Writer, s *predict.Score) error {
	if len(s.Classes) > widestConfusion {
		_, err := fmt.Fprintf(out, "confusion matrix: %d classes; --json has it\n", len(s.Classes))
		return err
	}
	fmt.Fprintln(out, "confusion matrix: a row for each label, a column for each prediction")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range s.Classes {
		fmt.Fprintf(t, "\t%s", shown(name))
	}
	fmt.Fprintln(t, "\t")
	for i, counts := range s.Confusion {
		fmt.Fprint(t, shown(s.Classes[i]))
		for _, n := range counts {
			fmt.Fprintf(t, "\t%d", n)
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}
