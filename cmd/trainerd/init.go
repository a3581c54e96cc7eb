package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

const initHelp = `Reads DATA, prints what it understood of it, writes a config with comments to
CONFIG, or to a file named like the data, and checks it. An existing file is not
changed. DATA is a table (CSV in any dialect, JSON lines or Parquet; compressed or
not) or TFRecord files of tf.Example messages, each also in several files that a
pattern in quotes names, IDX files such as MNIST's, an array of NumPy with an
example in each row (.npy, or in an .npz with its labels), or a folder with a folder
of images for each class, or with images whose labels are in the table that --label
names.

Without --label the column to predict is the one called target, label, survived,
y, outcome, diagnosis, species or class, else the last one; in a table without a
header the first one, if it alone has classes. It is a class if it has words, or few
different whole numbers; else a number.

Next to a table called like train.csv, a test.csv with the same columns is the test
part; so are files of IDX and NumPy data, arrays of an .npz, and folders, with such
names.

Columns that say nothing are left out: those that count or identify the rows, are
different in every row, have a single word, or tell the label in other words. The
config lists them; change it as you like. Rows of one patient, user or the like, as
a column named so tells, are kept together: all train, or all test.

EXAMPLES:
   trainerd init iris.csv
   trainerd init titanic.csv --label survived
   trainerd init 'sales-2026-*.csv' --label sold
   trainerd init houses.parquet --label price --task regression houses.toml
   trainerd init trips.csv --label minutes --drop fare --drop tip
   trainerd init train-images-idx3-ubyte.gz mnist.toml
   trainerd init X_train.npy
   trainerd init mnist.npz
   trainerd init 'train-*.tfrecord' --label image/class/label flowers.toml
   trainerd init photos/
   trainerd init --label breeds.csv dogs/` + initProgramHelp

// readingEvery is how often init says that it still reads: a million images take minutes.
const readingEvery = 20 * time.Second

func initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "write the config of a new job, for a table of data or a program",
		UsageText:   "trainerd init [--label COLUMN] [--task TASK] DATA [CONFIG] | [CONFIG] -- PROGRAM ARGS...",
		Description: initHelp,
		Flags: append(initProgramFlags(),
			&cli.StringSliceFlag{Name: "label", Usage: "name or number, from 0, of the `COLUMN` to predict; -1 is the last; of IDX or NumPy data, and of images in one folder, the file with the labels, or the array of an .npz"},
			&cli.StringFlag{Name: "weight", Usage: "the `COLUMN` of a table with the weight of each row"},
			&cli.StringFlag{Name: "group", Usage: "the `COLUMN` of a table that says which rows belong together, as those of one patient; \"\" for none"},
			&cli.StringSliceFlag{Name: "drop", Usage: "leave out the `COLUMN`, as one that is known only when the label is; may be repeated"},
			&cli.StringFlag{Name: "task", Usage: "`TASK` is classification or regression, instead of what the label suggests"},
			&cli.StringFlag{Name: "data", Usage: "the `FILE` with the data, instead of the argument"},
		),
		Action: func(c *cli.Context) error {
			if done, err := initProgram(c); done {
				return err
			}
			data, name, err := initFiles(c)
			if err != nil {
				return err
			}
			given := data
			defer parallel.AtEach(readingEvery, func() { fmt.Fprintf(c.App.ErrWriter, "still reading %s\n", given) })()
			p, err := newTemplate(c, data)
			if err != nil {
				return err
			}
			p.Name, p.PathOf = baseName(name), func(file string) string { return pathFrom(name, file) }
			if p.Sample != nil {
				data = p.Sample.File
			}
			p.File = p.PathOf(data)
			return judgeAndWrite(c, p, name)
		},
	}
}

// initFiles returns the names of the data and of the config.
func initFiles(c *cli.Context) (data, config string, err error) {
	args := c.Args().Slice()
	if c.IsSet("data") {
		args = append([]string{c.String("data")}, args...)
	}
	if len(args) == 0 || len(args) > 2 || args[0] == "" {
		return "", "", usagef("init: want DATA, and CONFIG unless it is to be named like the data")
	}
	data, config = args[0], baseName(args[0])+".toml"
	if len(args) == 2 {
		config = args[1]
	}
	if filepath.Ext(data) == ".toml" {
		return "", "", usagef("init: %s is a config; the data come first: trainerd init DATA [CONFIG]", data)
	}
	return data, config, isFree(config, data)
}

// isFree returns an error if there is a file already where the config is to be.
func isFree(config, data string) error {
	if _, err := os.Lstat(config); err != nil {
		return nil
	}
	return fmt.Errorf("%s already exists; give another name: trainerd init %s NAME.toml", config, shell.Quote(data))
}

// judgeAndWrite writes the config of a model that fits the data.
func judgeAndWrite(c *cli.Context, p *config.Template, name string) error {
	data, err := p.Load(c.Context, name)
	if err != nil {
		return err
	}
	if data != nil {
		defer data.Close()
	}
	found, err := p.Judge(data)
	if err != nil {
		return err
	}
	if found != "" {
		fmt.Fprintf(c.App.Writer, "note: %s\n", found)
	}
	return writeConfig(c, p, name, data)
}

// writeConfig writes the config and says what it comes to. The data may be loaded
// already, or nil.
func writeConfig(c *cli.Context, p *config.Template, name string, data *dataset.Dataset) error {
	text, err := p.Text(name)
	if err != nil {
		return err
	}
	if err := isFree(name, p.File); err != nil {
		return err // made while the data were read
	}
	if err := atomicfile.WriteFile(nil, name, []byte(text)); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "wrote %s; it comes to:\n\n", name)
	if err := daemon.CheckWith(c.Context, name, nil, data, c.App.Writer); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "\nnext:\n  %s\n", shell.Join([]string{os.Args[0], "run", name}))
	return err
}

// baseName returns the name of a file without its folder, up to the first dot, and
// without what makes it a pattern.
func baseName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	name = strings.Trim(strings.NewReplacer("*", "", "?", "", "[", "", "]", "").Replace(name), "-_ /")
	if name == "" {
		return "job"
	}
	return name
}

// pathFrom returns the path of a file as a config has it.
func pathFrom(config, file string) string {
	dir, err := filepath.Abs(filepath.Dir(config))
	if err != nil {
		return file
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return abs
}
