package table

import (
	"math"
	"strconv"
	"testing"
)

func TestDegrees(t *testing.T) {
	for field, want := range map[string]float64{
		"52°31'N": 52 + 31/60., `13°24'36"E`: 13.41, "33°52′04″S": -(33 + 52/60. + 4/3600.), "13.4° W": -13.4, "0° 30' W": -0.5,
		"52 ° 31 ' 12 '' N": 52.52, "-33°30'": -33.5, "-0°30'": -0.5,
	} {
		text, ok := degrees(field)
		got, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %s, %v; want %v", field, text, ok, want)
		}
	}
	for _, field := range []string{"26.3 °C", "26.3°", "5°F", "N", "°N", "200°N", "52°61'N", "52°31", "-5°W", "0x5°N", "x°N", "52°31'N, 13°E", "1e400°N"} {
		if text, ok := degrees(field); ok {
			t.Errorf("%s is %s", field, text)
		}
	}
}
