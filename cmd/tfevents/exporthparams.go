package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// hparamRow is one hyperparameter of a run.
type hparamRow struct {
	Run       string  `parquet:"run,dict" json:"run"`
	Trial     string  `parquet:"trial,dict" json:"trial"`   // runs of one trial have the same hyperparameters
	Status    string  `parquet:"status,dict" json:"status"` // success, failure, running or unknown
	StartTime number  `parquet:"start_time" json:"start_time"`
	EndTime   *number `parquet:"end_time,optional" json:"end_time"`
	HParam    string  `parquet:"hparam,dict" json:"hparam"`
	Number    *number `parquet:"number,optional" json:"number"` // of a number or, as 0 or 1, a bool
	Text      string  `parquet:"text" json:"text"`              // as text, whatever it is
}

// trial is what a run says about its hyperparameters.
type trial struct {
	view  *view
	start *tbpb.SessionStartInfo
	end   *tbpb.SessionEndInfo // nil while it runs
}

// trials returns the runs that have hyperparameters, and the metrics that experiments
// name.
func (s *selection) trials() (trials []*trial, metrics []*tbpb.MetricInfo) {
	for _, v := range s.views {
		one := &trial{view: v}
		for _, series := range v.series {
			if series.plugin != summary.PluginHParams {
				continue
			}
			data := new(tbpb.HParamsPluginData)
			if err := proto.Unmarshal(series.source.Metadata.GetPluginData().GetContent(), data); err != nil {
				s.report.damaged(fmt.Errorf("run %s, tag %q: the plugin data is not that of hyperparameters: %w", shown(v.run.Name), series.tag, err))
				continue
			}
			metrics = append(metrics, data.GetExperiment().GetMetricInfos()...)
			if data.GetSessionStartInfo() != nil {
				one.start = data.GetSessionStartInfo()
			}
			if data.GetSessionEndInfo() != nil {
				one.end = data.GetSessionEndInfo()
			}
		}
		if one.start != nil {
			trials = append(trials, one)
		}
	}
	return trials, metrics
}

func (t *trial) status() string {
	switch t.end.GetStatus() {
	case tbpb.Status_STATUS_SUCCESS:
		return "success"
	case tbpb.Status_STATUS_FAILURE:
		return "failure"
	case tbpb.Status_STATUS_RUNNING:
		return "running"
	}
	if t.end == nil {
		return "running"
	}
	return "unknown"
}

func (t *trial) endTime() *number {
	if t.end == nil {
		return nil
	}
	end := number(t.end.GetEndTimeSecs())
	return &end
}

func (s *selection) hparams() iter.Seq[hparamRow] {
	return func(yield func(hparamRow) bool) {
		trials, _ := s.trials()
		for _, t := range trials {
			for _, name := range slices.Sorted(maps.Keys(t.start.GetHparams())) {
				if !s.tags.MatchString(name) {
					continue
				}
				row := hparamRow{Run: t.view.run.Name, Trial: t.start.GetGroupName(), Status: t.status(),
					StartTime: number(t.start.GetStartTimeSecs()), EndTime: t.endTime(), HParam: name}
				row.Number, row.Text = hparamValue(t.start.GetHparams()[name])
				if !yield(row) {
					return
				}
			}
		}
	}
}

func hparamValue(v *structpb.Value) (*number, string) {
	switch x := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		n := number(x.NumberValue)
		return &n, formatNumber(x.NumberValue)
	case *structpb.Value_BoolValue:
		n := number(0)
		if x.BoolValue {
			n = 1
		}
		return &n, strconv.FormatBool(x.BoolValue)
	case *structpb.Value_StringValue:
		return nil, x.StringValue
	}
	return nil, ""
}

// exportTrials prints a row for each run: its hyperparameters, and the last values of
// the metrics that the experiment names, or of all scalars.
func (s *selection) exportTrials(w io.Writer) error {
	trials, metrics := s.trials()
	names, columns := map[string]bool{}, s.metricColumns(trials, metrics)
	for _, t := range trials {
		for name := range t.start.GetHparams() {
			names[name] = names[name] || s.tags.MatchString(name)
		}
	}
	maps.DeleteFunc(names, func(_ string, wanted bool) bool { return !wanted })
	hparams := slices.Sorted(maps.Keys(names))
	header := slices.Concat([]string{"run", "trial", "status", "start_time", "end_time"}, hparams)
	for _, c := range columns {
		header = append(header, c.title())
	}
	out := csv.NewWriter(w)
	if err := out.Write(distinct(header)); err != nil {
		return err
	}
	for _, t := range trials {
		if err := out.Write(s.trialCells(t, hparams, columns)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (s *selection) trialCells(t *trial, hparams []string, columns []metricColumn) []string {
	end := ""
	if e := t.endTime(); e != nil {
		end = formatNumber(float64(*e))
	}
	cells := []string{t.view.run.Name, t.start.GetGroupName(), t.status(), formatNumber(t.start.GetStartTimeSecs()), end}
	for _, name := range hparams {
		_, text := hparamValue(t.start.GetHparams()[name])
		cells = append(cells, text)
	}
	for _, c := range columns {
		cells = append(cells, s.metric(t, c))
	}
	return cells
}

// metricColumn names a metric: a scalar of the run itself, or of the run in a
// directory below it.
type metricColumn struct{ group, tag, name string }

func (c metricColumn) title() string {
	if c.name != "" {
		return c.name
	}
	return path.Join(c.group, c.tag)
}

func (s *selection) metricColumns(trials []*trial, infos []*tbpb.MetricInfo) (columns []metricColumn) {
	for _, m := range infos {
		columns = append(columns, metricColumn{m.GetName().GetGroup(), m.GetName().GetTag(), m.GetDisplayName()})
	}
	for _, t := range trials {
		for _, series := range t.view.series {
			if len(infos) == 0 && series.plugin == summary.PluginScalars {
				columns = append(columns, metricColumn{tag: series.tag})
			}
		}
	}
	var unique []metricColumn
	for _, c := range columns {
		if !slices.ContainsFunc(unique, func(u metricColumn) bool { return u.group == c.group && u.tag == c.tag }) {
			unique = append(unique, c)
		}
	}
	return unique
}

// metric returns the last value of a metric of a run, "" if it has none.
func (s *selection) metric(t *trial, c metricColumn) string {
	run := path.Join(t.view.run.Name, c.group)
	for _, v := range s.views {
		if v.run.Name != run {
			continue
		}
		for _, series := range v.series {
			if series.tag == c.tag && series.lastValue != nil {
				return formatNumber(*series.lastValue)
			}
		}
	}
	return ""
}
