package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// hparamTables are the tables whose keys affect how well a model is trained,
// and notHParams their keys that only say where something is.
var (
	hparamTables = []string{"data", "model", "train"}
	notHParams   = []string{"data.file", "data.labels", "data.test_file", "data.test_labels", "data.memory_mb", "data.keep_statistics"}
)

// alwaysHParams have a value in every job with a model family, whether it is set
// or not, so that runs can be compared by them.
var alwaysHParams = []string{"data.batch_size", "model.family", "model.optimizer", "model.learning_rate", "model.l2"}

// HParams returns the hyperparameters of the job, by key: the resolved values that
// the config and its flags set in [data], [model] and [train], other values set with
// --set, and the named arguments of a program.
func (c *Config) HParams() map[string]any {
	resolved := *c
	if !c.IsGraph() && !c.IsChild() {
		resolved.Model = c.Model.Resolved()
	}
	root := reflect.ValueOf(&resolved).Elem()
	all := argumentsOf(c.Child.Command)
	for i, table := range keysOf(root) {
		if !isTableField(root.Field(i)) {
			continue
		}
		for k, name := range keysOf(root.Field(i)) {
			if key := join(table, name); c.isHParam(table, key) {
				all[key] = hparam(root.Field(i).Field(k))
			}
		}
	}
	return all
}

func (c *Config) isHParam(table, key string) bool {
	_, _, flag := c.Place(key)
	switch {
	case slices.Contains(notHParams, key):
		return false
	case slices.Contains(alwaysHParams, key):
		return !c.IsGraph() && !c.IsChild()
	case slices.Contains(hparamTables, table):
		return c.IsSet(key)
	}
	return flag != "" && table != "child" && table != "cluster" && table != "warm_start"
}

// hparam returns a value as TensorBoard's plugin knows them.
func hparam(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Uint64:
		return v.Uint()
	case reflect.Float64:
		return v.Float()
	}
	if column, ok := v.Interface().(Column); ok {
		if column.Name != "" {
			return column.Name
		}
		return int64(column.Index)
	}
	if text, ok, err := valueText(v.Interface()); ok && err == nil {
		return text
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", "), "{}")
}
