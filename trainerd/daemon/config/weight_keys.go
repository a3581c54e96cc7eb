package config

import (
	"encoding/json"
	"reflect"
)

// weightKeys are the keys that say what the weights of a model mean, or what shapes they
// have: with another value of one, the weights of a checkpoint are those of another model.
var weightKeys = []string{
	"model.family", "model.hidden", "model.wide", "model.activation", "model.batch_norm", "model.loss",
	"model.image", "model.filters", "model.kernel_size", "model.pool",
	"model.vocabulary", "model.embedding", "model.combiner",
	"data.image", "data.scale", "data.normalize",
}

// WeightKeys returns the values of the keys that say what the weights of the job's
// model mean, in JSON, by key. A graph says itself what its weights mean, but for its input.
// image is the size of the data's images, nil for other data.
func (c *Config) WeightKeys(image []int) map[string]json.RawMessage {
	whole := *c
	whole.Model = c.Model.Resolved()
	if len(image) > 0 { // which either key may have set
		whole.Data.Image, whole.Model.Image = image, nil
	}
	values := make(map[string]json.RawMessage)
	for _, key := range weightKeys {
		if whole.hasEffect(key) {
			values[key], _ = json.Marshal(fieldAt(reflect.ValueOf(&whole).Elem(), key).Interface()) // lists, texts and finite numbers
		}
	}
	return values
}

// hasEffect reports whether a key of weightKeys has one on the job's model.
func (c *Config) hasEffect(key string) bool {
	switch table, _ := splitKey(key); {
	case table == "data":
		return c.Data.File != ""
	case c.IsGraph():
		return false
	case key == "model.activation":
		return len(c.Model.Hidden)+len(c.Model.Filters) > 0
	}
	return true
}
