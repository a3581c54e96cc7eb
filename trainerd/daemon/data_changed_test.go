package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestResumeWithOtherData resumes a job whose data have changed: other
// statistics are an error that names the column, unless those of the checkpoint
// are to be kept; another number of features is one always.
func TestResumeWithOtherData(t *testing.T) {
	c := clustersConfig(t, "data.normalize=standard", "train.steps=10")
	runJob(t, t.Context(), c)
	longer := func(overrides ...string) (*job, error) {
		o := []config.Override{{Flag: "--set", Assignment: "data.normalize=standard"}, {Flag: "--set", Assignment: "train.steps=20"}}
		for _, a := range overrides {
			o = append(o, config.Override{Flag: "--set", Assignment: a})
		}
		again, err := config.Load(c.File(), o)
		if err != nil {
			t.Fatal(err)
		}
		return newJob(t.Context(), again)
	}
	j, err := longer()
	if err != nil {
		t.Fatalf("the same data: %v", err)
	}
	j.close()
	data := filepath.Join(filepath.Dir(c.File()), "clusters.csv")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(text))+"\n", "\n")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(data, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(string(text) + lines[len(lines)-2])
	var changed *DataChangedError
	if _, err = longer(); !errors.As(err, &changed) || !strings.Contains(changed.Reason, "normalization/mean of ") {
		t.Fatalf("other statistics: %v", err)
	}
	if ExitCode(err) != ExitConfig {
		t.Errorf("exit code %d, want that of checkpoints of another job, %d", ExitCode(err), ExitConfig)
	}
	if j, err = longer("data.keep_statistics=true"); err != nil {
		t.Fatalf("with data.keep_statistics: %v", err)
	}
	j.close()
	for i := range lines[:len(lines)-1] {
		lines[i] = "1," + lines[i]
	}
	write(strings.Join(lines, ""))
	if _, err = longer("data.keep_statistics=true"); !errors.As(err, &changed) || !strings.Contains(changed.Reason, "features") {
		t.Fatalf("another number of features: %v", err)
	}
}

// TestResumeOlderCheckpoint resumes a logdir whose checkpoints lack statistics,
// as those of models did that were fed scaled rows: it has the same variables as
// before, and the statistics are constants of the graph.
func TestResumeOlderCheckpoint(t *testing.T) {
	c := clustersConfig(t, "train.steps=10")
	runJob(t, t.Context(), c)
	forgetWeightKeys(t, filepath.Join(c.Logdir, "model.ckpt-10.meta"))
	again, err := config.Load(c.File(), []config.Override{{Flag: "--set", Assignment: "data.normalize=standard"}, {Flag: "--set", Assignment: "train.steps=20"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, log := runJob(t, t.Context(), again); !strings.Contains(log, "model.ckpt-10") {
		t.Errorf("it has not resumed:\n%s", log)
	}
	s := readSaved(filepath.Join(c.Logdir, "model.ckpt-20"), []string{"normalization/mean"})
	if s == nil || len(s.values) != 0 {
		t.Errorf("the checkpoint has %+v", s)
	}
}

// TestResumeWithOtherColumns resumes jobs that take other columns than before, as many and of
// the same kinds: weights that were trained for one would be used for another.
func TestResumeWithOtherColumns(t *testing.T) {
	const rows = "1,2,0,1\n3,5,1,0\n2,2,0,0\n7,1,1,1\n1,4,0,1\n"
	for _, tt := range []struct{ name, header, first, then, want string }{
		{"the same, counted from the end", "", "data.label=-1", "data.label=3", ""},
		{"order", "", "data.features=['0', '1']", "data.features=['1', '0']", "feature 0 was the column 0, and is 1"},
		{"feature", "", "data.features=['0', '1']", "data.features=['0', '2']", "feature 1 was the column 1, and is 2"},
		{"label", "", "data.label=3", "data.label=2", "the label was the column 3, and is 2"},
		{"label by name", "a,b,y,z\n", "data.label='z'", "data.label='y'", `the label was the column "z", and is "y"`},
		{"label by name, then index", "a,b,y,z\n", "data.label='z'", "data.label=3", ""},
		{"label by index, then name", "a,b,y,z\n", "data.label=3", "data.label='z'", ""},
		{"parts of dates", "a,b,y,z\n", "data.dates={a='%d'}", "data.dates={a='%d'}&data.date_parts={a=['weekday']}", `the parts of the dates in the column "a" were []`},
		{"order by name", "a,b,y,z\n", "data.features=['a', 'b']", "data.features=['b', 'a']", `feature 0 was the column "a", and is "b"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clustersConfig(t)
			if err := os.WriteFile(filepath.Join(filepath.Dir(c.File()), "clusters.csv"), []byte(tt.header+rows), 0o666); err != nil {
				t.Fatal(err)
			}
			features := "data.features=['0', '1']"
			if tt.header != "" {
				features = "data.features=['a', 'b']"
			}
			job := func(steps, change string) *config.Config {
				var all []config.Override
				for _, a := range append([]string{"data.batch_size=2", "data.test_fraction=0", "eval.steps=0", "data.label=-1", features, steps}, strings.Split(change, "&")...) {
					all = append(all, config.Override{Flag: "--set", Assignment: a})
				}
				if tt.header != "" {
					all = append(all, config.Override{Flag: "--set", Assignment: "data.header=true"})
				}
				c, err := config.Load(c.File(), all)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			runJob(t, t.Context(), job("train.steps=2", tt.first))
			j, err := newJob(t.Context(), job("train.steps=4", tt.then))
			if err == nil {
				j.close()
			}
			var changed *DataChangedError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &changed) || !strings.Contains(changed.Reason, tt.want)) {
				t.Errorf("resuming: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestResumeWithOtherSplit resumes jobs whose test part has other rows than before, some of
// them rows that have trained: an error, though nothing else about the data differs. What
// keeps trained rows out of the test part is none.
func TestResumeWithOtherSplit(t *testing.T) {
	for _, tt := range []struct{ name, first, then, want string }{
		{"same", "data.test_fraction=0.25", "data.test_fraction=0.25", ""},
		{"same rows", "data.test_rows=20", "data.test_rows=20", ""},
		{"larger", "data.test_fraction=0.25", "data.test_fraction=0.5", "20 of 80 rows were for testing, and 40 of 80 are"},
		{"seed", "data.test_fraction=0.25", "data.seed=9", "were chosen with data.seed = 1, and are with 9"},
		{"order", "data.test_fraction=0.25", "data.shuffle=false", "another data.shuffle"},
		{"fewer of the last", "data.shuffle=false", "data.test_fraction=0.2", ""},
		{"more of the last", "data.shuffle=false", "data.test_fraction=0.3", "20 of 80 rows were for testing, and 24 of 80 are"},
		{"from none", "data.test_fraction=0", "data.test_fraction=0.25", "0 of 80 rows were for testing, and 20 of 80 are"},
		{"to none", "data.test_fraction=0.25", "data.test_fraction=0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clustersConfig(t, "train.steps=10", "eval.steps=0", "data.seed=1", tt.first)
			runJob(t, t.Context(), c)
			resume := func(keep string) error {
				var all []config.Override
				for _, a := range []string{"train.steps=20", "eval.steps=0", "data.seed=1", tt.first, tt.then, keep} {
					all = append(all, config.Override{Flag: "--set", Assignment: a})
				}
				again, err := config.Load(c.File(), all)
				if err != nil {
					t.Fatal(err)
				}
				j, err := newJob(t.Context(), again)
				if err == nil {
					j.close()
				}
				return err
			}
			err := resume("data.keep_statistics=false")
			var changed *DataChangedError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &changed) || !strings.Contains(changed.Reason, tt.want)) {
				t.Errorf("resuming: %v, want %q", err, tt.want)
			}
			if err := resume("data.keep_statistics=true"); err != nil {
				t.Errorf("with data.keep_statistics: %v", err)
			}
		})
	}
}

// TestLongerTexts takes texts that are not lists any more for other data: their words have other
// weights.
func TestLongerTexts(t *testing.T) {
	schema := func(length int) *dataset.Schema {
		return &dataset.Schema{Features: []dataset.Feature{{Name: "tags", Kind: dataset.KindText, Vocabulary: []string{"a", "b"}, Length: length}}}
	}
	if got := schemaChange(schema(2), schema(8)); got != "" {
		t.Errorf("lists of 2 and 8 words: %s", got)
	}
	if got, want := schemaChange(schema(8), schema(9)), `the texts of the column "tags" had up to 8 words, and have up to 9`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
