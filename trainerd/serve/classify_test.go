package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
)

// What :classify and :regress answer is what :predict does, in the form of
// TensorFlow Serving's Classify and Regress.
func TestClassify(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(true), 7)
	s, _ := newServer(t, dir)
	var predicted struct {
		Predictions []struct{ Probabilities []float64 }
	}
	_, body := ask(s, "POST", predictPath, `{"instances": [{"length": 3, "day": 12, "colour": "red"}, {"length": null, "day": 10, "colour": "blue"}]}`)
	if err := json.Unmarshal([]byte(body), &predicted); err != nil || len(predicted.Predictions) != 2 {
		t.Fatal(err, body)
	}
	for _, form := range []string{
		`{"examples": [{"length": 3, "day": "1970-01-13", "colour": {"b64": "cmVk"}}, {"length": NaN, "day": 10, "colour": "blue"}]}`,
		`{"signature_name": "serving_default", "context": {"colour": ["red"]}, "examples": [{"length": [3.0], "day": [12]}, {"length": [null], "day": 10, "colour": "blue"}]}`,
	} {
		var got struct{ Results [][][2]any }
		code, body := ask(s, "POST", "/v1/models/flowers:classify", form)
		if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || len(got.Results) != 2 {
			t.Fatalf("%s: %d %s", form, code, body)
		}
		for i, row := range got.Results {
			p := predicted.Predictions[i].Probabilities
			if want := fmt.Sprint([][2]any{{"rose", p[0]}, {"lily", p[1]}}); fmt.Sprint(row) != want {
				t.Errorf("%s: row %d: %v, want %s", form, i, row, want)
			}
		}
	}
	for body, want := range map[string]string{
		`{"examples": []}`: "must be a list of one example", `{"instances": [1]}`: "must be a list of one example", `[`: "JSON Parse error",
		`{"examples": [{"length": 3}]}`: "is missing", `{"signature_name": "other", "examples": [{}]}`: `\"other\" not found`, `{"examples": [{}]} []`: "something follows the object",
	} {
		if code, got := ask(s, "POST", "/v1/models/flowers/versions/7:classify", body); code != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s; want %s", body, code, got, want)
		}
	}
	if code, got := ask(s, "POST", "/v1/models/flowers:regress", `{"examples": [{"length": 3, "day": 12, "colour": "red"}]}`); code != 400 || !strings.Contains(got, "predicts no number") {
		t.Errorf("regress: %d %s", code, got)
	}
}

func TestRegress(t *testing.T) {
	d := flowers(false)
	d.Schema.Label, d.Schema.Classes = dataset.Feature{Name: "size", Kind: dataset.KindNumber}, 0
	d.Statistics.Label = dataset.Moments{Mean: 100, Variance: 9}
	dir := t.TempDir()
	save(t, dir, model.Config{Family: "linear", Seed: 1}, d, 7)
	s, _ := newServer(t, dir)
	var predicted struct{ Predictions []float64 }
	_, body := ask(s, "POST", predictPath, `{"instances": [[3, 12], [null, 10]]}`)
	if err := json.Unmarshal([]byte(body), &predicted); err != nil || len(predicted.Predictions) != 2 {
		t.Fatal(err, body)
	}
	for _, form := range []string{`{"examples": [{"x": [3, 12]}, {"x": [NaN, 10]}]}`, `{"context": {"day": 12}, "examples": [{"length": 3}, {"length": null, "day": 10}]}`} {
		var got struct{ Results []float64 }
		code, body := ask(s, "POST", "/v1/models/flowers:regress", form)
		if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || fmt.Sprint(got.Results) != fmt.Sprint(predicted.Predictions) {
			t.Errorf("%s: %d %s; want %v", form, code, body, predicted.Predictions)
		}
	}
	// What :predict answers that is not finite, :regress does too.
	_, same := ask(s, "POST", predictPath, `{"instances": [[Infinity, 12]]}`)
	if code, got := ask(s, "POST", "/v1/models/flowers:regress", `{"examples": [{"x": [Infinity, 12]}]}`); code != 200 || got != strings.Replace(same, "predictions", "results", 1) || !strings.Contains(got, "Infinity") {
		t.Errorf("infinity: %d %s; want %s", code, got, same)
	}
	if code, got := ask(s, "POST", "/v1/models/flowers:classify", `{"examples": [{"x": [3, 12]}]}`); code != 400 || !strings.Contains(got, "predicts no classes") {
		t.Errorf("classify: %d %s", code, got)
	}
}
