package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// newTemplate finds out what the job is to be, and prints it.
func newTemplate(c *cli.Context, file string) (*config.Template, error) {
	task := dataset.Task(c.String("task"))
	if task != dataset.AnyTask && task != dataset.Classification && task != dataset.Regression {
		return nil, usagef("init: --task is %s or %s", dataset.Classification, dataset.Regression)
	}
	label, err := labelFlag(c, file)
	if err != nil {
		return nil, err
	}
	sample, err := dataset.NewSample(c.Context, file, label, task)
	if err != nil {
		return nil, err
	}
	if sample != nil {
		if c.IsSet("weight") {
			return nil, usagef("init: --weight is for tables; for %s see data.weight and data.class_weights", sample.Format)
		}
		if c.IsSet("drop") {
			return nil, usagef("init: --drop is for tables, not for %s", sample.Format)
		}
		if c.IsSet("group") {
			return nil, usagef("init: --group is for tables, not for %s", sample.Format)
		}
		return &config.Template{Sample: sample}, printSample(c.App.Writer, sample, file)
	}
	return newTableTemplate(c, file, label, task)
}

// labelFlag returns what --label says, "" for nothing.
func labelFlag(c *cli.Context, file string) (string, error) {
	labels := c.StringSlice("label")
	if len(labels) == 0 {
		return "", nil
	}
	if len(labels) > 1 {
		one := shell.Join([]string{"trainerd", "init", "--label", labels[0], "--drop", labels[1], file, baseName(labels[0]) + ".toml"})
		return "", usagef("init: a job predicts one column, but --label is given %d times; write a job for each, which does not learn from the others: %s", len(labels), one)
	}
	return labels[0], nil
}

// newTableTemplate is newTemplate for a table.
func newTableTemplate(c *cli.Context, file, name string, task dataset.Task) (*config.Template, error) {
	survey, err := dataset.NewSurvey(c.Context, file)
	if err != nil {
		return nil, err
	}
	label, why := survey.ChooseLabel()
	if name != "" {
		var ok bool
		if label, ok = survey.Column(name); !ok {
			return nil, usagef("init: there is no column %q; there are %s", name, columnNames(survey, -1))
		}
		why = "as --label says"
	}
	plan, err := survey.Plan(c.Context, label, task)
	if err != nil {
		return nil, err
	}
	p := &config.Template{Survey: survey, Plan: plan}
	if err := useColumns(c, p); err != nil {
		return nil, err
	}
	test, err := useTestFile(c, p)
	if err != nil {
		return nil, err
	}
	return p, printPlan(c, p, file, why, test)
}

// useTestFile makes a table that is called like the test part, and has labels, the test part. It
// returns what to say of it.
func useTestFile(c *cli.Context, p *config.Template) (say string, err error) {
	f, err := p.Survey.FindTestFile(c.Context, p.Plan)
	switch {
	case err != nil || f == nil:
		return "", err
	case f.Unlabelled:
		label := p.Survey.Columns[p.Plan.Label].Name
		return fmt.Sprintf("note: %s has no values of %s to test with; trainerd predict answers its rows once the model is trained\n", f.Name, label), nil
	case f.Reason != "":
		return fmt.Sprintf("note: %s is not used as the test part: %s; to use it, correct that and set test_file in [data] instead of test_fraction\n", f.Name, f.Reason), nil
	case c.String("group") != "":
		return fmt.Sprintf("note: %s is not used as the test part, since --group chooses it among the groups\n", f.Name), nil
	}
	p.Plan.Ungroup()
	p.Plan.Test = f
	return fmt.Sprintf("test part: %s, %d rows\n", f.Name, f.Rows), nil
}

// useColumns gives columns the jobs that flags name.
func useColumns(c *cli.Context, p *config.Template) error {
	if c.IsSet("group") {
		p.Plan.Ungroup()
	}
	for _, flag := range []string{"weight", "group"} {
		name := c.String(flag)
		if name == "" {
			continue
		}
		column, err := columnBesidesLabel(p, flag, name)
		if err != nil {
			return err
		}
		if flag == "group" {
			p.Plan.GroupBy(column)
		} else {
			p.Weight = p.Plan.Weigh(column)
		}
	}
	for _, name := range c.StringSlice("drop") {
		column, err := columnBesidesLabel(p, "drop", name)
		if err != nil {
			return err
		}
		p.Plan.Leave(column)
	}
	return nil
}

// columnBesidesLabel returns the column that a flag names.
func columnBesidesLabel(p *config.Template, flag, name string) (int, error) {
	column, ok := p.Survey.Column(name)
	switch {
	case !ok:
		return 0, usagef("init: --%s: there is no column %q besides the label; there are %s", flag, name, columnNames(p.Survey, p.Plan.Label))
	case column == p.Plan.Label:
		return 0, usagef("init: --%s: %q is the label; --label chooses another one", flag, name)
	}
	return column, nil
}

// columnNames lists the first columns for a message, without one of them: -1 for none.
func columnNames(s *dataset.Survey, without int) string {
	const most = 20
	var names []string
	for i, p := range s.Columns {
		if i != without {
			names = append(names, p.Name)
		}
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// printPlan prints what was understood of the columns.
func printPlan(c *cli.Context, p *config.Template, file, why, test string) error {
	s, w := p.Survey, c.App.Writer
	fmt.Fprintf(w, "%s: %s, %d rows\n\n", file, describeTable(s.Options), s.Rows)
	t := terminal.NewTable("COLUMN", "KIND", "DISTINCT", "MISSING", "EXAMPLE", "RULE")
	for i := 0; i < len(p.Plan.Uses); i++ {
		u := p.Plan.Uses[i]
		if n := alike(p.Plan, i); n > 2 {
			last := p.Plan.Uses[i+n-1]
			t.Add(fmt.Sprintf("%s to %s (%d)", u.Name, last.Name, n), string(u.Kind), "", "0", "", u.Rule)
			i += n - 1
			continue
		}
		t.Add(u.Name, string(u.Kind), u.Distinct, strconv.Itoa(u.Missing), s.Columns[i].Example, u.Rule)
	}
	if err := t.Print(w, terminal.Style{}); err != nil {
		return err
	}
	what := fmt.Sprintf("a class, one of %d", s.Columns[p.Plan.Label].Distinct)
	switch {
	case p.Plan.Numbers:
		what = "a number"
	case p.Plan.MaybeNumbers:
		what += "; --task regression predicts it as a number"
	}
	fmt.Fprintf(w, "\nlabel: %s, chosen %s; it has %s\n", shown(s.Columns[p.Plan.Label].Name), why, what)
	fmt.Fprint(w, test)
	notes, err := s.Notes(c.Context, p.Plan)
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", terminal.Line(n))
	}
	return err
}

// printSample prints what was understood of data that are not a table.
func printSample(w io.Writer, s *dataset.Sample, file string) error {
	kinds := map[dataset.Format]string{dataset.FormatIDX: "IDX", dataset.FormatNumPy: "an array of NumPy", dataset.FormatTFRecord: "TFRecord", dataset.FormatImages: "images"}
	fmt.Fprintf(w, "%s: %s, %d examples\n\n", file, kinds[s.Format], s.Rows)
	t := terminal.NewTable("NAME", "KIND", "SHAPE", "EXAMPLE", "RULE")
	for _, f := range s.Features {
		t.Add(f.Name, f.Kind, f.Shape, f.Example, f.Rule)
	}
	if err := t.Print(w, terminal.Style{}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(s.Image) == 3 {
		fmt.Fprintf(w, "images: trained with %d x %d pixels of %d channels\n", s.Image[0], s.Image[1], s.Image[2])
	}
	if s.TestFile != "" {
		fmt.Fprintf(w, "test part: %s\n", s.TestFile)
	}
	if s.Note != "" {
		fmt.Fprintf(w, "note: %s\n", s.Note)
	}
	return nil
}

// alike returns how many columns from the one given on are treated alike, in
// tables of so many that nobody reads them one by one.
func alike(p *dataset.Plan, first int) int {
	const few = 30
	n := 1
	u := p.Uses[first]
	if len(p.Uses) <= few || first == p.Label || u.Missing > 0 {
		return n
	}
	for _, next := range p.Uses[first+1:] {
		if next.Kind != u.Kind || next.Rule != u.Rule || next.Missing > 0 || next.Drop != u.Drop || first+n == p.Label {
			break
		}
		n++
	}
	return n
}

// describeTable says how a table is stored.
func describeTable(o table.Options) string {
	switch o.Format {
	case table.JSON:
		return "JSON"
	case table.Parquet:
		return "Parquet"
	}
	separators := map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", ' ': "blanks", '|': "bars"}
	text := "CSV with " + separators[o.Separator]
	if o.Header {
		text += " and a header"
		if o.HeaderRows > 1 {
			text += fmt.Sprintf(" of %d rows", o.HeaderRows)
		}
	} else {
		text += ", without a header"
	}
	if o.Comment != 0 {
		text += fmt.Sprintf(", without the lines that begin with %c", o.Comment)
	}
	if o.Encoding != "" {
		text += ", Latin-1"
	}
	if o.Decimal != 0 {
		text += ", decimal commas"
	}
	return text
}
