package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/crossval"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Template is what is known about a job that has no config yet: for a table,
// or for data of another format.
type Template struct {
	Name   string // of the job, and of its logdir
	File   string // with the data, as written in the config
	Survey *dataset.Survey
	Plan   *dataset.Plan
	// Sample describes data that are not a table; nil for a table.
	Sample *dataset.Sample
	// PathOf returns the path of another file as written in the config.
	PathOf func(string) string
	// Weight is the column with the weights of the examples; "" for none.
	Weight string

	judged *crossval.Judgement // of numbers to predict; nil before Judge, and where it found nothing
	huber  bool                // whether Judge has found that labels far from all others hide the rest
}

// configTemplate is the text of a Template.
var configTemplate = template.Must(template.New("config").Funcs(template.FuncMap{"quote": tomlString}).Parse(`# {{.Name}}: predicts {{if .Number}}the number{{else}}the class{{end}} in {{.Label}}.
#
#   trainerd check {{.Config}}     what a run would do, and every problem
#   trainerd run   {{.Config}}     train; Ctrl-C stops and saves, run again resumes
#   trainerd status {{.Config}}    the status of a run
#   trainerd eval {{.Config}}      how good it is on the rows kept for testing
#   trainerd tensorboard {{.Logdir}}

# Checkpoints and events go here. A relative path starts at the folder in which
# you type the command. A new model or other data need a new logdir.
logdir = {{quote .Logdir}}

[data]
file = {{quote .File}}   # a relative path starts at this file's folder
{{- range .Data}}
{{.}}
{{- end}}

[model]
{{- range .Model}}
{{.}}
{{- end}}
seed = 1   # of the initial weights

[train]
epochs = {{.Epochs}}   # how often each row is used
# early_stopping = 5   # end after 5 evaluations that are not better; with eval.steps = {{.EvalSteps}}, metric = "loss"

[eval]
secs = 10   # how often the test rows are tried; and always at the end

[supervisor]
save_model_secs = 60   # a checkpoint each minute, and one at the end
max_to_keep = 5   # only the newest checkpoints stay
save_summaries_secs = 5   # how often TensorBoard's curves get a point
`))

// Text returns a config with comments. name is that of the file that it will
// be in.
func (p *Template) Text(name string) (string, error) {
	var b strings.Builder
	err := configTemplate.Execute(&b, map[string]any{
		"Name": oneLine(p.Name), "Number": p.isNumber(), "Label": oneLine(p.labelPlace()), "Config": oneLine(shell.Quote(name)),
		"Logdir": "logs/" + p.Name, "File": p.File, "Data": p.data(), "Model": p.model(), "Epochs": p.epochs(),
		"EvalSteps": max(1, p.epochs()*p.trainRows()/p.batchSize()/evaluations),
	})
	return b.String(), err
}

// evaluations is how many of them early stopping has to choose from.
const evaluations = 25

func (p *Template) isNumber() bool {
	if p.Sample != nil {
		return p.Sample.Numbers
	}
	return p.Plan.Numbers
}

// labelPlace says where the label is.
func (p *Template) labelPlace() string {
	switch {
	case p.Sample == nil:
		return "the column " + p.Survey.Columns[p.Plan.Label].Name
	case p.Sample.Format == dataset.FormatTFRecord:
		return "the feature " + p.Sample.Label
	case p.Sample.LabelFile != "":
		return filepath.Base(p.Sample.LabelFile)
	}
	return "the names of the folders"
}

// data returns the lines that say what the data are.
func (p *Template) data() (lines []string) {
	if p.Sample != nil {
		lines = p.sampleLines()
	} else {
		lines = p.tableLines()
	}
	lines = append(lines, "seed = 1   # of the shuffle; the same seed gives the same training")
	if !p.hasTestFile() {
		lines = append(lines, "test_fraction = 0.2   # one fifth of the rows is kept aside for testing")
	}
	return append(lines, fmt.Sprintf("batch_size = %d   # rows of a step", p.batchSize()))
}

// tableLines returns what is said of a table.
func (p *Template) tableLines() []string {
	value := tomlString(p.Survey.Columns[p.Plan.Label].Name)
	if !p.hasNames() {
		value = strconv.Itoa(p.Plan.Label)
	}
	lines := append(p.dialect(), "label = "+value+"   # the column to predict; all others are features")
	if p.Weight != "" {
		lines = append(lines, "weight = "+p.columnName(p.Weight)+"   # the column with the weights of the rows")
	}
	if group := p.Plan.Group(); group != "" {
		lines = append(lines, "group = "+p.columnName(group)+"   # rows of one stay together: all train, or all test")
	}
	if p.Plan.Test != nil {
		lines = append(lines, "test_file = "+tomlString(p.PathOf(p.Plan.Test.Name))+"   # the test part")
	}
	lines = append(lines, p.columns()...)
	return append(lines, `normalize = "standard"   # each number to mean 0 and deviation 1; or "minmax", or ""`)
}

func (p *Template) hasNames() bool {
	return p.Survey.Options.Format != table.CSV || p.Survey.Options.Header
}

// trainRows returns the number of rows that train.
func (p *Template) trainRows() int {
	switch {
	case p.hasTestFile():
		return max(1, p.rows())
	}
	return max(1, p.rows()*4/5)
}

func (p *Template) rows() int {
	if p.Sample != nil {
		return p.Sample.Rows
	}
	return p.Survey.Rows
}

// hasTestFile reports whether the test part is a file of its own.
func (p *Template) hasTestFile() bool {
	if p.Sample != nil {
		return p.Sample.TestFile != ""
	}
	return p.Plan.Test != nil
}

// batchSize returns the number of rows of a step: 32, or all of fewer.
func (p *Template) batchSize() int {
	const usual = 32
	return min(usual, p.trainRows())
}

// epochs returns how often each row is used: so often that small data have enough
// steps, and large data not more than they need.
func (p *Template) epochs() int {
	const usual, fewestSteps, mostSteps = 50, 3000, 100_000
	stepsOfEpoch := max(1, p.trainRows()/p.batchSize())
	if p.isConvnet() {
		return max(3, min(20, mostSteps/10/stepsOfEpoch), fewestSteps/2/stepsOfEpoch)
	}
	return max(2, min(usual, mostSteps/stepsOfEpoch), fewestSteps*p.batchSize()/p.trainRows())
}

// tomlList returns a list, on several lines if it is long.
func tomlList(items []string) string {
	const longest = 80
	if one := "[" + strings.Join(items, ", ") + "]"; utf8.RuneCountInString(one) <= longest {
		return one
	}
	var b strings.Builder
	b.WriteString("[")
	width := longest
	for _, item := range items {
		if width += utf8.RuneCountInString(item) + 2; width > longest {
			b.WriteString("\n  ")
			width = 2 + utf8.RuneCountInString(item)
		} else {
			b.WriteString(" ")
		}
		b.WriteString(item + ",")
	}
	return b.String() + "\n]"
}

// tomlString returns a basic string of TOML. Its escapes are JSON's.
func tomlString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can be marshalled
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

// oneLine keeps a text within a comment.
func oneLine(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
