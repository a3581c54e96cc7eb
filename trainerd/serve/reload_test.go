package serve

import (
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// slowBody is the body of a request that comes in two parts.
type slowBody struct {
	parts   []string
	between func()
}

func (b *slowBody) Read(p []byte) (n int, err error) {
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	if len(b.parts) == 1 {
		b.between()
	}
	n, b.parts = copy(p, b.parts[0]), b.parts[1:]
	return n, nil
}

// TestReloadWhileBodyComes has a model that is replaced while the body of a request comes: that does not hold
// the old one in memory, and the answer is the new one's, or that it is not the version that was asked for.
func TestReloadWhileBodyComes(t *testing.T) {
	for path, want := range map[string]string{predictPath: `"predictions"`, "/v1/models/flowers/versions/7:predict": "the version is 9"} {
		dir := t.TempDir()
		save(t, dir, logistic(1), flowers(false), 7)
		s, source := newServer(t, dir)
		old := source.use()
		source.release(old)
		body := &slowBody{parts: []string{`{"instances": `, `[[1, 2]]}`}, between: func() {
			save(t, dir, logistic(2), flowers(false), 9)
			if _, err := source.refresh(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := old.Predict(t.Context(), []float32{1, 2}); err == nil {
				t.Errorf("%s: the old model is held while the body comes", path)
			}
		}}
		w := httptest.NewRecorder()
		s.routes().ServeHTTP(w, httptest.NewRequest("POST", path, body))
		if got := w.Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, got, want)
		}
	}
}

// TestReloadOfUnreadable has a newer model whose files cannot be read for a while, and are not written again:
// it is loaded once they can.
func TestReloadOfUnreadable(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, logistic(1), flowers(false), 7)
	_, source := newServer(t, dir)
	save(t, dir, logistic(2), flowers(false), 9)
	data, aside := filepath.Join(dir, "model.ckpt-9.data-00000-of-00001"), filepath.Join(dir, "aside")
	if err := errors.Join(os.Rename(data, aside), os.Mkdir(data, 0o777)); err != nil {
		t.Fatal(err)
	}
	if changed, err := source.refresh(t.Context()); changed || err == nil {
		t.Fatalf("it is loaded without its data: %v", err)
	}
	if err := errors.Join(os.Remove(data), os.Rename(aside, data)); err != nil {
		t.Fatal(err)
	}
	if changed, err := source.refresh(t.Context()); !changed || err != nil || source.Version() != 9 {
		t.Errorf("then: changed %v, %v, version %d", changed, err, source.Version())
	}
}
