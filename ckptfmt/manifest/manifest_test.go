package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
)

// withManifest saves a checkpoint with its MetaGraph and a manifest.
func withManifest(t *testing.T) (prefix string, m *Manifest) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "model.ckpt-7")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := errors.Join(w.Add("w", ckptfmt.Scalar(float32(7))), w.Add("w/step", ckptfmt.Scalar(int64(7))), w.Finish(), metagraph.Write(layout.MetaName(prefix), &tfpb.MetaGraphDef{}, nil)); err != nil {
		t.Fatal(err)
	}
	m = &Manifest{
		Step: 7, WallTime: time.Date(2026, 11, 21, 14, 28, 31, 5e8, time.UTC),
		Metrics:    map[string]Metric{"loss": 0.25, "auc": Metric(math.NaN()), "best": Metric(math.Inf(-1)), "worst": Metric(math.Inf(1))},
		ConfigHash: "sha256:00", Parent: "model.ckpt-6",
	}
	if err := Write(t.Context(), prefix, m, nil); err != nil {
		t.Fatal(err)
	}
	return prefix, m
}

var equateNaN = cmp.Comparer(func(a, b Metric) bool { return a == b || a != a && b != b })

func TestManifest(t *testing.T) {
	prefix, m := withManifest(t)
	got, err := Read(prefix)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got, equateNaN); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	var suffixes []string
	for _, f := range got.Files {
		suffixes = append(suffixes, f.Suffix)
		b, err := os.ReadFile(prefix + f.Suffix)
		if err != nil || sha256Of(b) != f.SHA256 || int64(len(b)) != f.Bytes {
			t.Errorf("%s: %v, %d bytes with %s", f.Suffix, err, len(b), sha256Of(b))
		}
	}
	if want := []string{".data-00000-of-00001", ".index", ".meta"}; !cmp.Equal(suffixes, want) {
		t.Errorf("files %q, want %q", suffixes, want)
	}
	for name, err := range Verify(t.Context(), prefix) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyManifestFindsDamage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(file string) error
		want   string
	}{
		{"a bit", func(f string) error { return flipBitOf(f, 9) }, "SHA-256 checksum mismatch"},
		{"the end", func(f string) error { return os.Truncate(f, 3) }, "it has 3 bytes"},
		{"all", os.Remove, "no such file"},
	} {
		for _, suffix := range []string{".data-00000-of-00001", ".index"} {
			prefix, _ := withManifest(t)
			if err := tc.damage(prefix + suffix); err != nil {
				t.Fatal(err)
			}
			for name, err := range Verify(t.Context(), prefix) {
				if bad := name == prefix+suffix; bad != (err != nil) || bad && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s of %s lost: %s: %v", tc.name, suffix, name, err)
				}
			}
		}
	}
}

func flipBitOf(file string, at int) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b[at] ^= 1
	return os.WriteFile(file, b, 0o666)
}

func TestReadManifestErrors(t *testing.T) {
	sum := strings.Repeat("00", 32)
	entry := func(suffix, sum string, bytes int) string {
		return fmt.Sprintf(`{"version":1,"files":[{"suffix":%q,"bytes":%d,"sha256":%q}]}`, suffix, bytes, sum)
	}
	for _, tc := range []struct {
		name, text string
		want       error
	}{
		{"no JSON", "model_checkpoint_path", nil},
		{"no version", "{}", nil},
		{"newer version", `{"version":2}`, ckptfmt.ErrVersion},
		{"outside the directory", entry("/../../etc/passwd", sum, 1), nil},
		{"itself", entry(".manifest.json", sum, 1), nil},
		{"no checksum", entry(".index", "", 1), nil},
		{"negative size", entry(".index", sum, -1), nil},
		{"metric", `{"version":1,"metrics":{"loss":"low"}}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prefix := filepath.Join(t.TempDir(), "m-1")
			if err := os.WriteFile(Name(prefix), []byte(tc.text), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Read(prefix)
			var corrupt *ckptfmt.CorruptError
			if tc.want == nil && !errors.As(err, &corrupt) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "m-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
	if err := Write(t.Context(), filepath.Join(t.TempDir(), "m-1"), &Manifest{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for no checkpoint: %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"step":7,"wall_time":"2026-11-21T14:28:31Z","metrics":{"loss":0.5,"auc":"NaN"},"files":[{"suffix":".index","bytes":3,"sha256":"` + strings.Repeat("ab", 32) + `"}]}`))
	f.Add([]byte(`{"version":1,"files":[{"suffix":"/../x"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse("manifest", b)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if filepath.Base("prefix"+file.Suffix) != "prefix"+file.Suffix {
				t.Errorf("suffix %q leads elsewhere", file.Suffix)
			}
		}
	})
}

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
