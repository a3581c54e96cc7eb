package serve

import (
	"encoding/json"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestNumbersThatAreDates reads numbers of columns of dates as files have them, where they
// cannot be days.
func TestNumbersThatAreDates(t *testing.T) {
	for _, c := range []struct {
		form   string
		number json.Number
		want   float64
	}{
		{"iso", "20000", 20000}, {"iso", "20260131", 20260131}, {"%Y%m%d", "20000", 20000}, {"%Y%m%d", "19700103", 2},
		{"unix", "172800000", 2000}, {"unix", "20000.5", 20000.5}, {"unix_ms", "172800000000", 2000}, {"duration", "3", 3},
	} {
		layout, err := dataset.DateLayout(c.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := floatOf(c.number, textOf(&dataset.Feature{Kind: dataset.KindDate, Layout: layout}))
		if err != nil || got != c.want {
			t.Errorf("%s: %s is %v, %v; want %v", c.form, c.number, got, err, c.want)
		}
	}
	got, err := floatOf(json.Number("2000002"), textOf(&dataset.Feature{Kind: dataset.KindNumber}))
	if got != 2000002 || err != nil {
		t.Errorf("a number is %v, %v", got, err)
	}
}
