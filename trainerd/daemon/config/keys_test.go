package config

import (
	"slices"
	"strings"
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

// TestChoices takes each value that is proposed: the check says of none what it says
// of one that nobody knows.
func TestChoices(t *testing.T) {
	const text = "logdir = \"logs\"\n[data]\nfile = \"data.csv\"\n[model]\nfamily = \"softmax\"\n[train]\nsteps = 1\n"
	needed := map[string]string{"model.combiner": "model.family=embedding_bag", "model.loss": "model.family=linear", "warm_start.missing": "warm_start.from=model.npz"}
	problem := func(key, value string) string {
		set := []Override{{Flag: "--set", Assignment: key + "=" + value}}
		if needs := needed[key]; needs != "" {
			set = append(set, Override{Flag: "--set", Assignment: needs})
		}
		_, err := parse("job.toml", []byte(text), set)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	tested := 0
	for _, k := range Keys() {
		if len(k.Values) == 0 {
			continue
		}
		unknown := problem(k.Name, "nonsense")
		if unknown == "" {
			t.Errorf("%s takes any value", k.Name)
		}
		for _, value := range k.Values {
			tested++
			if found := problem(k.Name, value); found == strings.ReplaceAll(unknown, "nonsense", value) {
				t.Errorf("%s: %s", k.Name, found)
			}
		}
	}
	if tested < 60 {
		t.Errorf("only %d values are proposed", tested)
	}
	for name := range choices() {
		if !slices.ContainsFunc(Keys(), func(k Key) bool { return k.Name == name }) {
			t.Errorf("there is no key %s", name)
		}
	}
}
