package jsonfloat

import (
	"encoding/json"
	"math"
	"testing"
)

func TestMarshal(t *testing.T) {
	for want, x := range map[string]float64{
		`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1),
		"0": 0, "-0.0": math.Copysign(0, -1), "0.1": 0.1, "1e+300": 1e300,
	} {
		if got, err := Marshal(x); err != nil || string(got) != want {
			t.Errorf("%v: got %s, %v; want %s", x, got, err, want)
		}
	}
	// A float32 has no more digits than it needs.
	if got, err := Marshal(float32(0.1)); err != nil || string(got) != "0.1" {
		t.Errorf("float32: got %s, %v", got, err)
	}
}

// The encoder leaves the zero as it is.
func TestWithinJSON(t *testing.T) {
	got, err := json.Marshal([]number{number(math.Copysign(0, -1))})
	if err != nil || string(got) != "[-0.0]" {
		t.Errorf("got %s, %v", got, err)
	}
}

type number float64

func (n number) MarshalJSON() ([]byte, error) { return Marshal(float64(n)) }
