// Package jsonfloat writes floating-point numbers as JSON that every reader decodes to the same
// values.
package jsonfloat

import (
	"encoding/json"
	"math"
)

// NegativeZero is -0 as JSON: Python takes "-0" for the integer 0, which has no sign.
const NegativeZero = "-0.0"

// Marshal returns x as JSON. What JSON lacks is one of the strings "NaN", "Infinity" and
// "-Infinity".
func Marshal[F float32 | float64](x F) ([]byte, error) {
	switch v := float64(x); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	case v == 0 && math.Signbit(v):
		return []byte(NegativeZero), nil
	}
	return json.Marshal(x)
}
