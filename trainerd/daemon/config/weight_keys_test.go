package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestWeightKeysAreComplete wants each key of [model] and [data] to be known as one that says
// what the weights mean, or as one that a job may resume with another value of: because it is
// about how the model learns, or because the columns, words, classes and rows that follow from
// it are compared themselves.
func TestWeightKeysAreComplete(t *testing.T) {
	learns := strings.Fields(`model.inputs model.classes model.initializer model.dropout model.batch_norm_momentum model.l2 model.seed
		model.optimizer model.learning_rate model.schedule model.decay_steps model.decay_rate model.staircase model.end_learning_rate
		model.power model.boundaries model.rates model.warmup_steps model.momentum model.nesterov model.beta1 model.beta2 model.rho
		model.epsilon model.initial_accumulator model.learning_rate_power model.ftrl_l1 model.ftrl_l2 model.huber_delta
		data.class_weights data.weight data.shuffle data.shuffle_buffer data.memory_mb data.seed data.batch_size data.keep_statistics`)
	compared := strings.Fields(`data.file data.format data.separator data.header data.header_rows data.quote data.comment data.skip_lines
		data.encoding data.decimal data.thousands data.label data.labels data.features data.drop data.categories data.texts data.dates data.date_parts data.units
		data.na_values data.group data.missing data.test_file data.test_labels data.test_fraction data.test_rows`)
	known := slices.Concat(weightKeys, learns, compared)
	for _, key := range Keys() {
		table, _ := splitKey(key.Name)
		if n := count(known, key.Name); (table == "model" || table == "data") && n != 1 {
			t.Errorf("%s is listed %d times; want once, in weightKeys or here", key.Name, n)
		}
	}
}

func count(all []string, key string) int {
	n := 0
	for _, k := range all {
		if k == key {
			n++
		}
	}
	return n
}

// TestWeightKeys takes defaults and the size of images, which two keys may set, as what
// they come to.
func TestWeightKeys(t *testing.T) {
	c := Default()
	c.Data.File, c.Model.Family, c.Model.Hidden, c.Model.Image = "images", "convnet", []int{3}, []int{8, 8, 1}
	byModel := c.WeightKeys([]int{8, 8, 1})
	c.Model.Image, c.Data.Image, c.Model.Activation = nil, []int{8, 8, 1}, "relu"
	byData := c.WeightKeys([]int{8, 8, 1})
	one, _ := json.Marshal(byModel)
	other, _ := json.Marshal(byData)
	if string(one) != string(other) || string(byData["data.image"]) != "[8,8,1]" || string(byData["model.activation"]) != `"relu"` {
		t.Errorf("got %s and %s", one, other)
	}
}
