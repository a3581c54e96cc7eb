package rewrite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// AverageName is the suffix that tf.train.ExponentialMovingAverage adds to a
// variable's name for its average, unless it was given another name.
const AverageName = "ExponentialMovingAverage"

// debiased are the variables that an average without bias has next to it.
var debiased = []string{"biased", "local_step"}

// UseAverages replaces variables by their moving averages, and drops the
// averages themselves unless keep is set. It returns how many there are; if
// there are none, the error matches [ckptfmt.ErrNotFound]. Averages are found
// by their names (variable/name) and, for Keras' optimizers with use_ema,
// through the object graph.
func (s *Source) UseAverages(name string, keep bool) (int, error) {
	averages, err := s.averages(name)
	if err != nil {
		return 0, err
	}
	if len(averages) == 0 {
		return 0, fmt.Errorf("%w: no moving average in %s: no name ends in /%s", ckptfmt.ErrNotFound, s.name, name)
	}
	found := len(averages)
	s.loseAverages(averages)
	if err := s.checkAverages(averages); err != nil {
		return 0, err
	}
	source := make(map[string]bool, len(averages)) // names of averages
	for _, a := range averages {
		source[a] = true
	}
	var parts []ckptfmt.Part
	variables := variablesOf(averages)
	for _, p := range s.parts {
		if averages[p.Name] == "" && (keep || !source[p.Name] && !isDebias(p.Name, source)) {
			parts = append(parts, p)
		}
	}
	for _, p := range s.parts {
		for _, variable := range variables[p.Name] {
			p.Name = variable
			parts = append(parts, p)
		}
	}
	s.parts = parts
	s.renamed = true
	if !keep {
		s.keys = append(s.keys, func(key string) string {
			if source[key] {
				return ""
			}
			return key
		})
	}
	return found, nil
}

// loseAverages makes a damaged tensor of each variable whose average is one.
func (s *Source) loseAverages(averages map[string]string) {
	lost := make(map[string]bool)
	variables := variablesOf(averages)
	for i, d := range s.damaged {
		for _, variable := range variables[d.Name] {
			s.damaged[i].Name = variable
			lost[variable] = true
			delete(averages, variable)
		}
	}
	s.parts = slices.DeleteFunc(s.parts, func(p ckptfmt.Part) bool { return lost[p.Name] })
}

// variablesOf returns the variables of each average.
func variablesOf(averages map[string]string) map[string][]string {
	of := make(map[string][]string, len(averages))
	for _, variable := range slices.Sorted(maps.Keys(averages)) {
		of[averages[variable]] = append(of[averages[variable]], variable)
	}
	return of
}

func isDebias(name string, averages map[string]bool) bool {
	for _, suffix := range debiased {
		if of, ok := strings.CutSuffix(name, "/"+suffix); ok && averages[of] {
			return true
		}
	}
	return false
}

// averages returns the names of the averages by the names of their variables.
func (s *Source) averages(name string) (map[string]string, error) {
	found := make(map[string]string)
	for _, p := range s.parts {
		if variable, ok := strings.CutSuffix(p.Name, "/"+name); ok && variable != "" {
			found[variable] = p.Name
		}
	}
	for _, d := range s.damaged {
		if variable, ok := strings.CutSuffix(d.Name, "/"+name); ok && variable != "" {
			found[variable] = d.Name
		}
	}
	g, err := s.objectGraph()
	if err != nil {
		return nil, err
	}
	for i := range g.GetNodes() {
		variables, ok := child(g, i, kerasTrainable)
		averages, hasAny := child(g, i, kerasAverages)
		if !ok || !hasAny {
			continue
		}
		of := valuesByName(g, variables)
		for n, average := range valuesByName(g, averages) {
			if variable := of[n]; variable != "" && average != "" {
				found[s.key(variable)] = s.key(average)
			}
		}
	}
	delete(found, "")
	return found, nil
}

// valuesByName returns the keys of the values of a list's elements.
func valuesByName(g *tfpb.TrackableObjectGraph, list int) map[string]string {
	keys := make(map[string]string)
	for _, c := range g.Nodes[list].GetChildren() {
		if !inGraph(g, c.GetNodeId()) {
			continue
		}
		if a := g.Nodes[c.GetNodeId()].GetAttributes(); len(a) == 1 {
			keys[c.GetLocalName()] = a[0].GetCheckpointKey()
		}
	}
	return keys
}

// checkAverages checks that an average has the type and shape of its variable, if that is in the
// checkpoint too.
func (s *Source) checkAverages(averages map[string]string) error {
	byName := make(map[string]ckptfmt.Part, len(s.parts))
	for _, p := range s.parts {
		byName[p.Name] = p
	}
	for variable, average := range averages {
		v, ok := byName[variable]
		a := byName[average]
		if ok && (v.DType != a.DType || !slices.Equal(v.Full, a.Full)) {
			return fmt.Errorf("%q is %s, its average %s", variable, dtype.Text(v.DType, v.Full), dtype.Text(a.DType, a.Full))
		}
	}
	return nil
}
