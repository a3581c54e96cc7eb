package config

import (
	"encoding/json"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// Template is what is known of a job that has no config yet.
type Template struct {
	Name   string // of the job, and of its logdir
	File   string // with the data, as the config is to have it
	Survey *dataset.Survey
	Plan   *dataset.Plan
}

// configTemplate is the text of a Template. Its values train most tables of a
// few columns well enough to begin with.
var configTemplate = template.Must(template.New("config").Funcs(template.FuncMap{"quote": tomlString}).Parse(`# {{.Name}}: predicts {{if .Number}}the number{{else}}the class{{end}} in the column {{.LabelName}}.
#
#   trainerd check {{.Config}}     what a run would do, and every problem
#   trainerd run   {{.Config}}     train; Ctrl-C stops and saves, run again resumes
#   trainerd status {{.Config}}    the status of a run
#   tensorboard --logdir {{.Logdir}}

# Checkpoints and events go here. A relative path starts at the folder in which
# you type the command. A new model or other data need a new logdir.
logdir = {{quote .Logdir}}

[data]
file = {{quote .File}}   # a relative path starts at this file's folder
{{- range .Dialect}}
{{.}}
{{- end}}
label = {{.LabelValue}}   # the column to predict; all others are features
{{- range .Columns}}
{{.}}
{{- end}}
normalize = "standard"   # each number to mean 0 and deviation 1; or "minmax", or ""
seed = 1   # of the shuffle; the same seed gives the same training
test_fraction = 0.2   # one fifth of the rows is kept aside for testing
batch_size = {{.BatchSize}}   # rows of a step

[model]
{{- if .Number}}
family = "linear"   # a weighted sum of the features
optimizer = "adam"   # or sgd, momentum, nesterov, adagrad, adadelta, rmsprop, ftrl
learning_rate = 0.03   # lower it if the loss jumps or becomes NaN
schedule = "cosine"   # of the learning rate: down to 0 at the last step
{{- else}}
family = "mlp"   # a multilayer perceptron; "softmax" has no hidden layer
hidden = [64]   # sizes of the hidden layers
activation = "relu"
l2 = 0.01   # keeps weights small, so that few rows are not learnt by heart
optimizer = "adam"   # or sgd, momentum, nesterov, adagrad, adadelta, rmsprop, ftrl
learning_rate = 0.001   # lower it if the loss jumps or becomes NaN
{{- end}}
seed = 1   # of the initial weights

[train]
epochs = {{.Epochs}}   # how often each row is used

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
	label := p.Survey.Columns[p.Plan.Label].Name
	value := tomlString(label)
	if !p.hasNames() {
		value = strconv.Itoa(p.Plan.Label)
	}
	var b strings.Builder
	err := configTemplate.Execute(&b, map[string]any{
		"Name": oneLine(p.Name), "Number": p.Plan.Numbers, "LabelName": oneLine(label), "Config": oneLine(shell.Quote(name)),
		"Logdir": "logs/" + p.Name, "File": p.File, "LabelValue": value,
		"Dialect": p.dialect(), "Columns": p.columns(), "BatchSize": p.batchSize(), "Epochs": p.epochs(),
	})
	return b.String(), err
}

func (p *Template) hasNames() bool {
	return p.Survey.Options.Format != table.CSV || p.Survey.Options.Header
}

// batchSize returns the number of rows of a step: 32, or all of fewer.
func (p *Template) batchSize() int {
	const usual = 32
	return min(usual, max(1, p.Survey.Rows*4/5))
}

// epochs returns how often each row is used: 50 times, and so often that small
// data have enough steps.
func (p *Template) epochs() int {
	const usual, fewestSteps = 50, 3000
	return max(usual, fewestSteps*p.batchSize()/max(1, p.Survey.Rows*4/5))
}

// dialect returns the lines that say how the table is written.
func (p *Template) dialect() (lines []string) {
	o := p.Survey.Options
	line := func(key, value, comment string) {
		lines = append(lines, key+" = "+value+"   # "+comment)
	}
	if o.Format != table.CSV {
		line("format", tomlString(string(o.Format)), "the columns have names")
		return lines
	}
	if o.Separator != ',' {
		line("separator", tomlString(string(o.Separator)), "of the columns")
	}
	if o.Quote != '"' {
		line("quote", tomlString(string(o.Quote)), "around fields")
	}
	if o.Comment != 0 {
		line("comment", tomlString(string(o.Comment)), "begins lines that are left out")
	}
	if o.Skip > 0 {
		line("skip_lines", strconv.Itoa(o.Skip), "before the table")
	}
	if o.Encoding != "" {
		line("encoding", tomlString(o.Encoding), "Latin-1, or Windows-1252")
	}
	if o.Decimal != 0 {
		line("decimal", tomlString(string(o.Decimal)), "the decimal mark")
	}
	if o.Thousands != 0 {
		line("thousands", tomlString(string(o.Thousands)), "between groups of three digits")
	}
	if o.Header {
		line("header", "true", "the first row has the names of the columns")
	} else {
		line("header", "false", "the first row is an example already")
	}
	return lines
}

// columns returns the lines that say what the columns hold.
func (p *Template) columns() (lines []string) {
	var drop, categories, dates []string
	missing := false
	for _, u := range p.Plan.Uses {
		switch {
		case u.Drop:
			drop = append(drop, p.columnName(u.Name))
			continue
		case u.Kind == dataset.KindCategory && (u.Words || u.Name != p.Survey.Columns[p.Plan.Label].Name):
			categories = append(categories, p.columnName(u.Name))
		case u.Kind == dataset.KindDate:
			dates = append(dates, tomlString(u.Name)+" = "+tomlString(u.Form))
		}
		missing = missing || u.Missing > 0
	}
	if len(drop) > 0 {
		lines = append(lines, "drop = "+tomlList(drop)+"   # columns that are left out")
	}
	if len(categories) > 0 {
		lines = append(lines, "categories = "+tomlList(categories)+"   # columns of words")
	}
	if len(dates) > 0 {
		lines = append(lines, "dates = { "+strings.Join(dates, ", ")+" }   # how they are written")
	}
	if missing {
		lines = append(lines, `missing = "fill"   # by the mean; rows without a label are left out; or "error"`)
	}
	return lines
}

// columnName returns a column as a list has it.
func (p *Template) columnName(name string) string {
	if !p.hasNames() {
		return name // its number
	}
	return tomlString(name)
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
