package daemon

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// newFamilyProgram builds the model that fits the data.
func newFamilyProgram(c *config.Config, data *dataset.Dataset) (*program.Program, program.Input, error) {
	m := c.Model
	v := config.NewValidator(c)
	v.Require(m.Inputs == 0 || m.Inputs == data.Features, "model.inputs",
		fmt.Sprintf("is %d, but the data have %d features", m.Inputs, data.Features), "leave it out, or check data.label and data.file")
	m.Inputs, m.Classes = data.Features, data.Classes
	m = m.WithSteps(c.Steps(data))
	if m.Family == "convnet" && len(m.Image) == 0 {
		m.Image = data.Image
	}
	v.AddModelErrors(m.Check())
	if err := v.Err(); err != nil {
		return nil, nil, err
	}
	built, err := buildFamily(c, m, data)
	if err != nil {
		return nil, nil, err
	}
	return program.OfFamily(built), program.FamilyInput(built, data), nil
}

// buildFamily builds the model with what it needs to take raw rows. A logdir of
// a model that was fed scaled rows gets its statistics as constants, so that the
// training continues as it began.
func buildFamily(c *config.Config, m model.Config, data *dataset.Dataset) (*model.Model, error) {
	spec := model.Spec{Config: m, Data: &model.Data{Schema: data.Schema, Normalize: c.Data.Normalize, Scale: c.Data.Scale, Weighted: data.HasWeights()}}
	if c.Cluster.Sync {
		spec.Sync = &model.SyncReplicas{Total: c.Cluster.Workers, Aggregate: c.Cluster.ReplicasToAggregate}
	}
	if spec.Data.NeedsStatistics(m) {
		var err error
		if spec.Data.Statistics, err = data.Statistics(); err != nil {
			return nil, err
		}
		if m.Loss == "huber_loss" {
			if spec.Data.LabelSpread, err = data.LabelSpread(); err != nil {
				return nil, err
			}
		}
		if err := data.CheckScale(c.Data.File, c.Data.Normalize); err != nil {
			return nil, err
		}
	}
	built, err := spec.Build()
	if err != nil {
		return nil, err
	}
	names, err := model.StatisticVariables(built.Meta)
	if err != nil {
		return nil, err
	}
	saved := newestSaved(c, names)
	if saved == nil {
		return built, nil
	}
	if len(names) > 0 && len(saved.values) == 0 {
		spec.Data.Constant = true
		return spec.Build()
	}
	return built, saved.check(c, built, spec.Data, names)
}
