package keras_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

func TestFit(t *testing.T) {
	like := openModel(t)
	parts := slices.Clone(like.Parts())
	missing := parts[0]
	parts[0].Name, parts[0].Stored = "other", "" // one is missing, one is left over
	for _, o := range []keras.FitOptions{{}, {DropRest: true}, {KeepMissing: true}, {Partial: true}} {
		if _, err := like.Fit(parts, o); !errors.Is(err, keras.ErrModel) {
			t.Errorf("%+v: the error is %v", o, err)
		}
	}
	fit, err := like.Fit(parts, keras.FitOptions{DropRest: true, KeepMissing: true})
	if err != nil || !slices.Equal(fit.Kept, []string{missing.Name}) || !slices.Equal(fit.Dropped, []string{"other"}) {
		t.Fatalf("kept %v, dropped %v, %v", fit.Kept, fit.Dropped, err)
	}
	var b bytes.Buffer
	if err := keras.WriteModel(t.Context(), &b, fit.Parts, like); err != nil {
		t.Fatal(err)
	}
	same(t, b.Bytes(), like.Parts())

	reshaped := slices.Clone(like.Parts())
	reshaped[0].Shape = []int64{77}
	if _, err := like.Fit(reshaped, keras.FitOptions{DropRest: true, KeepMissing: true}); !errors.Is(err, keras.ErrModel) {
		t.Errorf("another shape: the error is %v", err)
	}
	if fit, err := like.Fit([]ckptfmt.Part{parts[1]}, keras.FitOptions{Partial: true}); err != nil || len(fit.Parts) != 1 {
		t.Errorf("a part: %v", err)
	}
}
