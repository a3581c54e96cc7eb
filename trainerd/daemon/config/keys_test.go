package config

import (
	"slices"
	"testing"
)

// Every key is listed once, and what has keys of its own is not.
func TestKeys(t *testing.T) {
	forms := make(map[string]string)
	for _, k := range Keys() {
		if forms[k.Name] != "" {
			t.Errorf("%s is there twice", k.Name)
		}
		forms[k.Name] = k.Form
	}
	for name, want := range map[string]string{
		"logdir": "a text", "train.steps": "an integer", "data.shuffle": "true or false, true by default", "data.label": "a value",
		"supervisor.max_to_keep": "an integer, 5 by default", "data.units": "a table", "model.hidden": "a list",
	} {
		if forms[name] != want {
			t.Errorf("%s is %q, want %q", name, forms[name], want)
		}
	}
	if forms["data"] != "" || slices.Contains([]string{forms["model.learning_rate"]}, "") {
		t.Errorf("data is %q, model.learning_rate %q", forms["data"], forms["model.learning_rate"])
	}
}
