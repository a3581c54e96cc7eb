package daemon

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// otherRows says what to do if a run has no rows to test its model with.
const otherRows = "name a file with rows that have not trained"

// TestPart loads the data of the newest run in a logdir, whose test part has not trained
// the model in source, made for rows as model says. If other rows would test it now, that is
// a [*DataChangedError]. The caller must close the Dataset.
func TestPart(ctx context.Context, logdir, source string, model *dataset.Schema) (*dataset.Dataset, error) {
	name := filepath.Join(logdir, keptConfig)
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: atomicfile.ErrNotRegular}
	}
	if err != nil {
		return nil, &dataset.Error{File: logdir, Reason: "has no config of a run", Hint: otherRows, Err: err}
	}
	c, err := config.Load(name, nil)
	if err != nil {
		return nil, err
	}
	d, err := dataset.Load(ctx, c.Data.File, c.DatasetOptions())
	if err != nil {
		return nil, err
	}
	reason := schemaChange(model, &d.Schema)
	if reason == "" {
		reason = splitChange(model.Split, d.Schema.Split)
	}
	switch {
	case reason != "":
		err = &DataChangedError{source, reason, otherRows}
	case d.TestRows == 0:
		err = &dataset.Error{File: logdir, Reason: "the run keeps no rows for testing", Hint: otherRows}
	default:
		return d, nil
	}
	d.Close()
	return nil, err
}
