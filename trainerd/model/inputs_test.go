package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

func TestInputNames(t *testing.T) {
	for _, c := range []struct{ columns, want string }{
		{"age|sepal length (cm)|größe|1a|_x|名前|ÄÖ", ""},
		{"class|from|self|None|match|Class", "class_|from_|self_|None_|match|Class"},
		{"a.b|a_b|a-b", "a.b_|a_b|a-b__"},
		{"a.b|a-b", "a.b|a-b_"},
		{"class|class_|class__", "class___|class_|class__"},
		{"class|class.|x", "class_|class._|x"},
		{"a_b|a.b|a.b_", "a_b|a.b__|a.b_"},
		{"1a|arg_1a", "1a_|arg_1a"},
		{"area (m²)|x½|①|ﷺ", "area (m_)|x_|_|__"},
		{"m²|m_", "m__|m_"},
		{"ำ|นำ", "_ำ|นำ"},
		{"age|age", "column_0|column_1"},
		{"age||b", "column_0|column_1|column_2"},
	} {
		names := strings.Split(c.columns, "|")
		s := &dataset.Schema{}
		for _, name := range names {
			s.Features = append(s.Features, dataset.Feature{Name: name})
		}
		if c.want == "" {
			c.want = c.columns
		}
		if got := strings.Join(InputNames(s), "|"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.columns, got, c.want)
		}
	}
}

// TestInputNamesDiffer makes tables of all short names of few characters: no two
// arguments may be equal, and no input may have the name of another column.
func TestInputNamesDiffer(t *testing.T) {
	alphabet := []rune("a_.1²é")
	var all []string
	for _, a := range alphabet {
		all = append(all, string(a))
		for _, b := range alphabet {
			all = append(all, string([]rune{a, b}))
			for _, c := range alphabet {
				all = append(all, string([]rune{a, b, c}), fmt.Sprintf("is%c%c%c", a, b, c))
			}
		}
	}
	all = append(all, "is", "is_", "is.", "self", "self_")
	s := &dataset.Schema{}
	for _, name := range all {
		s.Features = append(s.Features, dataset.Feature{Name: name})
	}
	seen := make(map[string]string)
	for i, name := range InputNames(s) {
		key := argument(name)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are one argument, %s", other, name, key)
		}
		if seen[key] = name; reserved[key] || identifiable(key) != key {
			t.Errorf("%s is called %s, which cannot be an argument", all[i], name)
		}
		if name != all[i] && slices.Contains(all, name) {
			t.Errorf("%s is called %s, which is another column", all[i], name)
		}
	}
}
