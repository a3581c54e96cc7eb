package control

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The guide names the metrics that there are, and says of each what it is.
func TestMetricsInGuide(t *testing.T) {
	guide, err := os.ReadFile("../../doc/service.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(trainerd_\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(guide), -1) {
		documented = append(documented, m[1]+" "+m[2])
	}
	m, _ := begun(t)
	families, err := m.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "trainerd_") {
			registered = append(registered, f.GetName()+" "+strings.ToLower(f.GetType().String()))
		}
	}
	slices.Sort(documented)
	if !slices.Equal(documented, registered) {
		t.Errorf("the guide has\n%s\nthere are\n%s", strings.Join(documented, "\n"), strings.Join(registered, "\n"))
	}
}
