package torch_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// damaged returns what Verify finds in a file, by name.
func damaged(ctx context.Context, t *testing.T, file []byte, most int) (names []string, errs []error) {
	t.Helper()
	r, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range r.Verify(ctx) {
		if err != nil {
			names, errs = append(names, name), append(errs, err)
		}
		if len(errs) == most {
			break
		}
	}
	return names, errs
}

// TestVerifyOfOtherStorages finds damage in storages of tensors that are not listed, such as those of
// a buffer that a module does not save, or of a sparse tensor. A tensor's own is said once.
func TestVerifyOfOtherStorages(t *testing.T) {
	file := archiveOf(t, []member{
		{"x/data.pkl", "\x80\x02" + scalar + ".", zip.Store}, {"x/data/", "", zip.Store}, {"x/data/0", "\x00\x00\x80\x3f", zip.Store},
		{"x/data/1", "first", zip.Store}, {"x/data/b", "second", zip.Store}, {"x/.data/serialization_id", "third", zip.Store},
	})
	for text, want := range map[string][]string{
		"\x00\x00\x80\x3f": {"tensor"}, "first": {""}, "second": {""}, "third": nil,
	} {
		b := bytes.Replace(file, []byte(text), slices.Concat([]byte("y"), []byte(text[1:])), 1)
		names, errs := damaged(t.Context(), t, b, 9)
		if !slices.Equal(names, want) || len(errs) > 0 && (!errors.As(errs[0], new(*ckptfmt.CorruptError)) || !errors.Is(errs[0], ckptfmt.ErrChecksum)) {
			t.Errorf("a change in %q: %q, %v", text, names, errs)
		}
	}
	both := bytes.Replace(bytes.Replace(file, []byte("first"), []byte("fifth"), 1), []byte("second"), []byte("minute"), 1)
	if names, _ := damaged(t.Context(), t, both, 9); len(names) != 2 {
		t.Errorf("two changes: %q", names)
	}
	if names, _ := damaged(t.Context(), t, both, 1); len(names) != 1 {
		t.Errorf("two changes, until the first: %q", names)
	}
	if names, _ := damaged(t.Context(), t, file, 9); len(names) != 0 {
		t.Errorf("no change: %q", names)
	}
}

// TestVerifyEnds when it is told to, and says so once, also after the tensors.
func TestVerifyEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, value := range []string{"N", scalar} {
		file := archiveOf(t, []member{
			{"x/data.pkl", "\x80\x02" + value + ".", zip.Store}, {"x/data/0", "\x00\x00\x80\x3f", zip.Store}, {"x/data/1", "first", zip.Store},
		})
		if names, errs := damaged(ctx, t, file, 9); !slices.Equal(names, []string{""}) || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("got %q, %v", names, errs)
		}
	}
}
