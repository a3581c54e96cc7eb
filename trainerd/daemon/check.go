package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// Check reads everything that a job needs - config, data, model, logdir - and
// writes to w what a run would do, without doing it. The error holds all that
// is wrong, also with the data when the config is wrong too.
func Check(ctx context.Context, name string, overrides []Override, w io.Writer) error {
	c, err := LoadConfig(name, overrides)
	if err != nil {
		return errors.Join(err, c.checkData())
	}
	j, err := newJob(c)
	if err != nil {
		return err
	}
	s, err := j.stand(ctx)
	if err != nil {
		return err
	}
	defer s.sess.Close()
	return j.describe(w, s)
}

// checkData returns what is wrong with the data of a config that has problems,
// if their settings are not among these.
func (c *Config) checkData() error {
	if c == nil || c.Data.File == "" {
		return nil
	}
	v := &validator{c, &ConfigError{}}
	v.data()
	if len(v.problems.Problems) > 0 || c.Model.Classes < 0 {
		return nil
	}
	_, err := dataset.Load(c.Data.File, c.datasetOptions())
	return err
}

// describe writes the table of a job.
func (j *job) describe(w io.Writer, s *standing) error {
	parameters, err := j.parameters(s.sess)
	if err != nil {
		return err
	}
	c, d := j.config, j.data
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("job", "%s", c.Name)
	row("data", "%s", c.Data.File)
	row("rows", "%d to train, %d to test", d.TrainRows, d.TestRows)
	row("features", "%d", d.Features)
	row("classes", "%d", d.Classes)
	row("model", "%s", describeModel(c))
	row("parameters", "%d", parameters)
	row("steps", "%d of %d rows (%.4g epochs)", j.steps, d.BatchSize(), float64(j.steps)*float64(d.BatchSize())/float64(d.TrainRows))
	row("checkpoints", "%s", describeSaves(c.Supervisor))
	row("logdir", "%s", absolute(c.Logdir))
	row("state", "%s", j.describeStanding(s))
	return t.Flush()
}

func describeModel(c *Config) string {
	text := c.Model.Family
	if len(c.Model.Hidden) > 0 {
		text += fmt.Sprintf(" %v", c.Model.Hidden)
	}
	if c.Model.Optimizer != "" {
		text += ", " + c.Model.Optimizer
	}
	return text
}

func describeSaves(s SupervisorConfig) string {
	var when []string
	if s.SaveModelSteps > 0 {
		when = append(when, fmt.Sprintf("every %d steps", s.SaveModelSteps))
	}
	if s.SaveModelSecs > 0 {
		when = append(when, fmt.Sprintf("every %v", s.SaveModelSecs.Duration()))
	}
	if len(when) == 0 {
		return "none: a stopped job begins again"
	}
	if s.MaxToKeep == 0 {
		return strings.Join(when, " and ") + "; all are kept"
	}
	return fmt.Sprintf("%s; the newest %d are kept", strings.Join(when, " and "), s.MaxToKeep)
}

func (j *job) describeStanding(s *standing) string {
	var b strings.Builder
	switch {
	case s.prefix == "":
		b.WriteString("fresh: begins at step 0")
	case s.complete:
		fmt.Fprintf(&b, "complete at step %d (%s)", s.step, filepath.Base(s.prefix))
	default:
		fmt.Fprintf(&b, "resumes at step %d (%s)", s.step, filepath.Base(s.prefix))
	}
	var locked *trainerd.LockedError
	if errors.As(trainerd.CheckLogdir(j.config.Logdir), &locked) {
		fmt.Fprintf(&b, "; in use by %v", locked.Holder)
	}
	for _, d := range s.damaged {
		fmt.Fprintf(&b, "; %s is damaged: %v", filepath.Base(d.Prefix), d.Err)
	}
	return b.String()
}

// parameters counts the numbers that training changes.
func (j *job) parameters(sess trainerd.Session) (int64, error) {
	store, ok := sess.(trainerd.VariableStore)
	if !ok {
		return 0, fmt.Errorf("session %T does not list its variables", sess)
	}
	trainable := make(map[string]bool)
	for _, b := range j.model.Meta.GetCollectionDef()["trainable_variables"].GetBytesList().GetValue() {
		v := new(tfpb.VariableDef)
		if err := proto.Unmarshal(b, v); err != nil {
			return 0, fmt.Errorf("collection trainable_variables: %w", err)
		}
		trainable[strings.TrimSuffix(v.GetVariableName(), ":0")] = true
	}
	total := int64(0)
	for _, v := range store.Variables() {
		if !trainable[v.Name] {
			continue
		}
		n, err := ckptfmt.NumElements(v.Shape)
		if err != nil {
			return 0, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		total += n
	}
	return total, nil
}
