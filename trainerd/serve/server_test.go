package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/leaktest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// flowers has two numbers, and a word and a date if asked.
func flowers(words bool) *model.Data {
	d := &model.Data{
		Schema: dataset.Schema{
			Features: []dataset.Feature{{Name: "length", Kind: dataset.KindNumber}, {Name: "day", Kind: dataset.KindDate}},
			Label:    dataset.Feature{Name: "kind", Kind: dataset.KindCategory, Vocabulary: []string{"rose", "lily"}}, Classes: 2,
		},
		Statistics: &dataset.Statistics{Features: []dataset.Moments{{Mean: 2, Variance: 4}, {Mean: 10, Variance: 4}}},
		Normalize:  dataset.NormalizeStandard,
	}
	if words {
		d.Schema.Features = append(d.Schema.Features, dataset.Feature{Name: "colour", Kind: dataset.KindCategory, Vocabulary: []string{"red", "white"}})
		d.Statistics.Features = append(d.Statistics.Features, dataset.Moments{})
	}
	return d
}

// save writes a checkpoint of an untrained model.
func save(t *testing.T, dir string, cfg model.Config, d *model.Data, step int64) {
	t.Helper()
	cfg.Inputs = len(d.Schema.Features)
	m, err := model.Spec{Config: cfg, Data: d}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := runtime.New(m.Meta.GetGraphDef(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, nil, []string{m.InitOp}); err != nil {
		t.Fatal(err)
	}
	saver := &checkpoint.Saver{MetaGraph: m.Meta}
	if _, err := saver.Save(t.Context(), sess, filepath.Join(dir, "model.ckpt"), step); err != nil {
		t.Fatal(err)
	}
}

func logistic(seed int64) model.Config { return model.Config{Family: "logistic", Seed: seed} }

// newServer returns the handler for the model of a logdir.
func newServer(t *testing.T, dir string) (*Server, *Source) {
	t.Helper()
	source, err := NewSource(t.Context(), dir, predict.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	return NewServer(Options{Source: source, Name: "flowers", MaxBody: 1 << 12}), source
}

// ask returns the status and the body of an answer.
func ask(s *Server, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

const predictPath = "/v1/models/flowers:predict"

// TestFormats asks for the same rows in all forms: the answers are equal.
func TestFormats(t *testing.T) {
	for _, words := range []bool{false, true} {
		dir := t.TempDir()
		save(t, dir, logistic(1), flowers(words), 7)
		s, _ := newServer(t, dir)
		forms := []string{
			`{"instances": [[3, 12], [null, 10]]}`,
			`{"instances": [{"x": [3, 12]}, {"x": [NaN, 10]}], "signature_name": "serving_default"}`,
			`{"instances": [{"length": ">3", "day": "1970-01-13", "other": 1}, {"length": "NA", "day": 10}]}`,
		}
		columns := []string{`{"inputs": [[3, 12], [NaN, 10]]}`, `{"inputs": {"x": [[3, 12], [NaN, 10]]}}`,
			`{"inputs": {"length": [3, null], "day": ["1970-01-13", 10], "other": [1, 2]}}`}
		if words {
			forms = []string{
				`{"instances": [{"length": "3", "day": "1970-01-13", "colour": "red"}, {"length": "", "day": 10, "colour": "blue"}]}`,
				`{"instances": [{"length": 3, "day": 12, "colour": {"b64": "cmVk"}, "kind": "rose"}, {"length": NaN, "day": 10, "colour": null}]}`,
			}
			columns = []string{`{"inputs": {"length": [3, null], "day": [12, 10], "colour": ["red", ""]}}`}
		}
		var want [2][]float64
		for i, form := range forms {
			var got struct {
				Predictions []struct {
					Probabilities []float64
					Classes       int
					Name          string `json:"class_names"`
				}
			}
			code, body := ask(s, "POST", predictPath, form)
			if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || len(got.Predictions) != 2 {
				t.Fatalf("%s: %d %s", form, code, body)
			}
			for k, p := range got.Predictions {
				if i == 0 {
					want[k] = p.Probabilities
				}
				if fmt.Sprint(p.Probabilities) != fmt.Sprint(want[k]) || p.Name != []string{"rose", "lily"}[p.Classes] || math.Abs(p.Probabilities[0]+p.Probabilities[1]-1) > 1e-6 {
					t.Errorf("%s: row %d: got %+v, want %v", form, k, p, want[k])
				}
			}
		}
		for _, form := range columns {
			var got struct {
				Outputs struct {
					Probabilities [][]float64
					Names         []string `json:"class_names"`
				}
			}
			code, body := ask(s, "POST", predictPath, form)
			if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || fmt.Sprint(got.Outputs.Probabilities) != fmt.Sprint(want) || len(got.Outputs.Names) != 2 {
				t.Errorf("%s: %d %s; want %v", form, code, body, want)
			}
		}
	}
}

// TestColumnNames asks by the columns' own names where the inputs have others, and
// by those.
func TestColumnNames(t *testing.T) {
	for _, words := range []bool{false, true} {
		d, dir := flowers(words), t.TempDir()
		d.Schema.Features[0].Name, d.Schema.Features[1].Name = "class", "a.b"
		own, keys := []string{"class", "a.b"}, []string{"class", "a.b"}
		if words {
			d.Schema.Features[2].Name = "a_b"
			own, keys = append(own, "a_b"), []string{"class_", "a.b_", "a_b"}
		}
		save(t, dir, logistic(1), d, 7)
		s, _ := newServer(t, dir)
		var first string
		for _, names := range [][]string{own, keys} {
			values := []string{"3", `"1970-01-13"`, `"red"`}
			object, columns := make([]string, len(names)), make([]string, len(names))
			for i, name := range names {
				object[i], columns[i] = fmt.Sprintf("%q: %s", name, values[i]), fmt.Sprintf("%q: [%s]", name, values[i])
			}
			code, body := ask(s, "POST", predictPath, `{"instances": [{`+strings.Join(object, ", ")+`}]}`)
			if first = cmp.Or(first, body); code != 200 || body != first {
				t.Errorf("instances of %q: %d %s; want %s", names, code, body, first)
			}
			if !words {
				continue
			}
			if code, body = ask(s, "POST", predictPath, `{"inputs": {`+strings.Join(columns, ", ")+`}}`); code != 200 {
				t.Errorf("inputs %q: %d %s", names, code, body)
			}
			if code, body = ask(s, "POST", "/v1/models/flowers:classify", `{"examples": [{`+strings.Join(columns, ", ")+`}]}`); code != 200 {
				t.Errorf("examples of %q: %d %s", names, code, body)
			}
		}
		if !words {
			continue
		}
		for _, form := range []string{
			`{"instances": [{"class": 3, "class_": 4, "a.b": 5, "a_b": "red"}]}`,
			`{"inputs": {"class": [3], "class_": [4], "a.b": [5], "a_b": ["red"]}}`,
		} {
			if code, body := ask(s, "POST", predictPath, form); code != 400 || !strings.Contains(body, `input \"class\"`) || !strings.Contains(body, "is given twice") {
				t.Errorf("%s: %d %s", form, code, body)
			}
		}
	}
}

// TestAlike asks with names and words that only look like those of the model: composed, in two
// characters, or with blanks that nobody sees.
func TestAlike(t *testing.T) {
	for _, words := range []bool{false, true} {
		d, dir := flowers(words), t.TempDir()
		d.Schema.Features[0].Name = "Gr\u00f6\u00dfe"
		value, other := "10", "10"
		if words {
			d.Schema.Features[2].Vocabulary[0] = "gr\u00fcn"
			value, other = "gr\u00fcn", "gru\u0308n"
		}
		save(t, dir, logistic(1), d, 7)
		s, _ := newServer(t, dir)
		form := func(name, word string) string {
			return fmt.Sprintf(`{"instances": [{%q: 3, "day": 12, "colour": %q}]}`, name, word)
		}
		_, want := ask(s, "POST", predictPath, form("Gr\u00f6\u00dfe", value))
		for _, name := range []string{"Gro\u0308\u00dfe", "Gr\u00f6\u00dfe\u200b "} {
			if code, body := ask(s, "POST", predictPath, form(name, other)); code != 200 || body != want {
				t.Errorf("%q: %d %s; want %s", name, code, body, want)
			}
		}
		code, body := ask(s, "POST", predictPath, `{"instances": [{"Gr\u00f6\u00dfe": 3, "Gro\u0308\u00dfe": 4, "day": 12, "colour": "red"}]}`)
		if code != 400 || !strings.Contains(body, "is given twice") {
			t.Errorf("twice: %d %s", code, body)
		}
	}
}

// TestErrors asks for what cannot be answered.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(true), 7)
	s, _ := newServer(t, dir)
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", predictPath, `{`, 400, "JSON Parse error"},
		{"POST", predictPath, `{}`, 400, "missing \\\"instances\\\""},
		{"POST", predictPath, `{"instances": []}`, 400, "must be a list"},
		{"POST", predictPath, `{"instances": [1], "inputs": 1}`, 400, "only one of them"},
		{"POST", predictPath, `{"instances": [[1, 2]]}`, 400, "instance 0 is not an object"},
		{"POST", predictPath, `{"instances": [{"length": 1, "day": 2}]}`, 400, "instance 0: the input \\\"colour\\\" is missing"},
		{"POST", predictPath, `{"instances": [{"length": "1", "day": 2, "colour": "red"}, {"length": "long", "day": 2, "colour": "red"}]}`, 400, "\\\"length\\\": row 1: \\\"long\\\" is not a number"},
		{"POST", predictPath, `{"instances": [{"length": 1, "day": "soon", "colour": "red"}]}`, 400, "is not a date"},
		{"POST", predictPath, `{"instances": [{"length": [1, 2], "day": 1, "colour": "red"}]}`, 400, "has the shape [1 2]"},
		{"POST", predictPath, `{"inputs": {"length": [1], "day": [2], "color": ["red"]}}`, 400, "input \\\"colour\\\": is missing"},
		{"POST", predictPath, `{"inputs": {"length": [1], "day": [2], "colour": ["red"], "size": [1]}}`, 200, "probabilities"},
		{"POST", predictPath, `{"inputs": {"length": [1, 2], "day": [2, 3], "colour": ["red"]}}`, 400, "\\\"day\\\": has 2 rows, but \\\"colour\\\" has 1"},
		{"POST", predictPath, `{"signature_name": 5, "instances": [1]}`, 400, "\\\"signature_name\\\" cannot be a JSON number"},
		{"POST", predictPath, `[1]`, 400, "the request is a JSON array; want an object"},
		{"POST", predictPath, `{"signature_name": "other", "instances": [1]}`, 400, "\\\"other\\\" not found"},
		{"POST", predictPath, `{"instances": [` + strings.Repeat(" ", 1<<12) + `1]}`, 413, "more than 4096 bytes"},
		{"POST", "/v1/models/trees:predict", `{}`, 404, "Latest(trees)"},
		{"POST", "/v1/models/flowers/versions/8:predict", `{}`, 404, "the version is 7"},
		{"GET", predictPath, ``, 405, "GET is not the method"},
		{"GET", "/v1/models/flowers/labels/x", ``, 404, "Malformed request"},
		{"GET", "/other", ``, 404, "Not found"},
	} {
		code, body := ask(s, tt.method, tt.path, tt.body)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %.60s: got %d %s; want %d with %s", tt.method, tt.path, tt.body, code, body, tt.code, tt.want)
		}
	}
}

// TestColumnErrors asks a model of numbers alone by columns.
func TestColumnErrors(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	s, _ := newServer(t, dir)
	for form, want := range map[string]string{
		`{"length": [1]}`:                        `the column \"day\" is missing`,
		`{"length": [1], "day": 2}`:              `the column \"day\" is missing, or is no list`,
		`{"length": [1], "day": [2, 3]}`:         `the column \"day\" has 2 rows, but \"length\" has 1`,
		`{"length": [1, 2], "day": [2, "soon"]}`: `row 1: the column \"day\": \"soon\" is not a date`,
		`{"length": [], "day": []}`:              ``,
	} {
		code, body := ask(s, "POST", predictPath, `{"inputs": `+form+`}`)
		if code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s; want 400 with %s", form, code, body, want)
		}
	}
}

// TestStatus asks for what describes the model and the server.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	s, _ := newServer(t, dir)
	ask(s, "POST", predictPath, `{"instances": [[1, 2]]}`)
	ask(s, "POST", predictPath, `{}`)
	for path, want := range map[string]string{
		"/v1/models/flowers":                     `"version":"7","state":"AVAILABLE","status":{"error_code":"OK"`,
		"/v1/models/flowers/versions/7":          `"version":"7"`,
		"/v1/models/flowers/metadata":            `"x":{"dtype":"DT_FLOAT","tensor_shape":{"dim":[{"size":"-1","name":""},{"size":"2","name":""}],"unknown_rank":false},"name":"x:0"}`,
		"/v1/models/flowers/versions/7/metadata": `"model_spec":{"name":"flowers","signature_name":"","version":"7"}`,
		"/monitoring/prometheus/metrics":         `:tensorflow:serving:request_count{model_name="flowers",status="INVALID_ARGUMENT"} 1`,
		"/metrics":                               `:tensorflow:serving:request_count{model_name="flowers",status="OK"} 1`,
		"/healthz":                               "ok",
		"/readyz":                                "ok",
	} {
		if code, body := ask(s, "GET", path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s; want %s", path, code, body, want)
		}
	}
}

// TestReload holds that a newer checkpoint, and one among the best above all, is
// used from the next request on, that one which cannot be loaded changes
// nothing, and that a request under way keeps its model.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	s, source := newServer(t, dir)
	version := func() string {
		_, body := ask(s, "GET", "/v1/models/flowers", "")
		return body
	}
	refresh := func(want bool, step string) {
		t.Helper()
		if changed, err := source.refresh(t.Context()); err != nil || changed != want {
			t.Fatalf("changed %v, %v; want %v", changed, err, want)
		}
		if got := version(); !strings.Contains(got, `"version":"`+step+`"`) {
			t.Fatalf("got %s, want version %s", got, step)
		}
	}
	refresh(false, "7")
	used := source.use()
	save(t, dir, logistic(2), flowers(false), 9)
	refresh(true, "9")
	if _, err := used.Predict(t.Context(), []float32{1, 2}); err != nil {
		t.Errorf("a request under way: %v", err)
	}
	source.release(used)
	if _, err := used.Predict(t.Context(), []float32{1, 2}); err == nil {
		t.Error("the model that was replaced is not closed")
	}
	save(t, filepath.Join(dir, "best"), logistic(3), flowers(false), 8)
	refresh(true, "8")
	refresh(false, "8")
}

// TestVersions serves the highest number of a folder of SavedModels.
func TestVersions(t *testing.T) {
	logdir, base := t.TempDir(), t.TempDir()
	for i, number := range []string{"2", "10"} {
		save(t, logdir, logistic(int64(i)), flowers(true), int64(i))
		if _, err := predict.Export(t.Context(), logdir, filepath.Join(base, number), predict.Options{}); err != nil {
			t.Fatal(err)
		}
		s, _ := newServer(t, base)
		if _, body := ask(s, "GET", "/v1/models/flowers", ""); !strings.Contains(body, `"version":"`+number+`"`) {
			t.Errorf("got %s, want version %s", body, number)
		}
		if code, body := ask(s, "POST", predictPath, `{"instances": [{"length": 3, "day": 2, "colour": "red"}]}`); code != 200 {
			t.Errorf("version %s: %d %s", number, code, body)
		}
	}
}

// TestShutdown ends a server, whose request under way is answered.
func TestShutdown(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	s, _ := newServer(t, dir)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	r, err := http.Post("http://"+ln.Addr().String()+predictPath, "application/json", strings.NewReader(`{"instances": [[1, 2]]}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != 200 {
		t.Errorf("%d %s, %v", r.StatusCode, body, err)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestQuoteNonFinite(t *testing.T) {
	for in, want := range map[string]string{
		`[NaN, -Infinity, Infinity]`: `["NaN", "-Infinity", "Infinity"]`,
		`["NaN", "a\"NaN", NaN]`:     `["NaN", "a\"NaN", "NaN"]`,
		`{"Infinity": 1}`:            `{"Infinity": 1}`,
		`["NaN`:                      `["NaN`,
	} {
		if got := string(quoteNonFinite([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestLargeRequests has a bounded number of large bodies in memory; small requests
// do not wait for them.
func TestLargeRequests(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	s, _ := newServer(t, dir)
	for range roomPieces {
		s.large.pieces <- struct{}{}
	}
	const rows = `{"instances": [[1, 2]]}`
	if code, text := ask(s, "POST", predictPath, rows); code != http.StatusOK {
		t.Errorf("a small request: %d %s", code, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", predictPath, strings.NewReader(rows))
	r.ContentLength = -1
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("one of unknown length: %d %s", w.Code, w.Body)
	}
}
