package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// Whatever the data look like, the config that is proposed for them is valid.
func TestTemplate(t *testing.T) {
	for _, c := range []struct {
		name, header, comma string
		label               int
		number              bool
	}{
		{"plain", "", ",", 2, false},
		{"header", "a,b,class", ",", 2, false},
		{"first", "", ";", 0, false},
		{"number", "a\tb\tprice", "\t", 1, true},
		{"quotes in names", `"a ""b"" \",c,"d # é"`, ",", 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var rows strings.Builder
			if c.header != "" {
				fmt.Fprintln(&rows, c.header)
			}
			for i := range 100 {
				rows.WriteString(strings.ReplaceAll(fmt.Sprintf("%d,%d,%d\n", i%3, i*7%11, i%2), ",", c.comma))
			}
			file := filepath.Join(dir, "da\"ta\\.csv")
			if err := os.WriteFile(file, []byte(rows.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			survey, err := dataset.NewSurvey(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			task := dataset.Classification
			if c.number {
				task = dataset.Regression
			}
			plan, err := survey.Plan(t.Context(), c.label, task)
			if err != nil {
				t.Fatal(err)
			}
			p := &config.Template{Name: c.name, File: filepath.Base(file), Survey: survey, Plan: plan}
			name := filepath.Join(dir, "job.toml")
			text, err := p.Text(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			logdir := config.Override{Flag: "--logdir", Assignment: "logdir=" + filepath.Join(dir, "logdir"), Literal: true}
			if err := Check(t.Context(), name, []config.Override{logdir}, &out); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			want := "80 to train, 20 to test"
			if !strings.Contains(out.String(), want) {
				t.Errorf("check does not say %q:\n%s", want, out.String())
			}
			if strings.Contains(out.String(), "classes") == c.number {
				t.Errorf("check says:\n%s", out.String())
			}
		})
	}
}
