package integrity

import (
	"errors"
	"strings"
	"testing"
)

// Models of LightGBM are whole if what they begin has its end. Old versions write no parameters, and
// other lines need none.
func TestBoosted(t *testing.T) {
	const trees = "tree\nversion=v4\nTree=0\nend of trees\n"
	for text, want := range map[string]error{
		trees + "parameters:\n[a: 1]\nend of parameters\n\npandas_categorical:null\n": nil,
		trees + "parameters:\n[a: 1]\n":                                               errCut,
		trees + "feature_importances:\nx=1\n":                                         nil,
		"tree\nversion=v4\nTree=0\n":                                                  errCut,
		"tree\nversion=v4\nparameters:\nend of parameters\n":                          errCut,
	} {
		if err := checkBoosted(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
