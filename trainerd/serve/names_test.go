package serve

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/predict"
)

// TestNames serves models whose names are those of any folder: each answers where
// PredictPath says, and has metrics.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	source, err := NewSource(t.Context(), dir, predict.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	for _, name := range []string{"lr=0.1", "2026-11-28_10:15:00", "my run", "50%", "a/b", "größe", "old\xff", "versions", "what?#", "a:predict"} {
		s := NewServer(Options{Source: source, Name: name})
		path := PredictPath(name)
		if u, err := url.Parse(path); err != nil || u.Path != "/v1/models/"+name+":predict" {
			t.Errorf("%q: %s is %v, %v", name, path, u, err)
		}
		base := strings.TrimSuffix(path, ":predict")
		for what, want := range map[string]int{":predict": 200, "/versions/7:predict": 200, "/versions/8:predict": 404, "x:predict": 404, "/x": 404} {
			if code, body := ask(s, "POST", base+what, `{"instances": [[3, 12]]}`); code != want {
				t.Errorf("%q: %s answers %d %s", name, base+what, code, body)
			}
		}
		for _, what := range []string{"", "/metadata", "/versions/7/metadata"} {
			if code, body := ask(s, "GET", base+what, ""); code != 200 {
				t.Errorf("%q: %s answers %d %s", name, base+what, code, body)
			}
		}
		w := httptest.NewRecorder()
		s.routes().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), `status="OK"} 2`) {
			t.Errorf("%q: the metrics are %d %s", name, w.Code, w.Body)
		}
	}
}
