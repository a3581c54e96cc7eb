package dataset

import (
	"fmt"
	"strings"
	"testing"
)

// The names and words of a text in Latin-1 are left as they are; those of another encoding,
// which look like noise then, are pointed out.
func TestNotesOnEncodings(t *testing.T) {
	for _, c := range []struct {
		name, header string
		words        []string
		noted        bool
	}{
		{"German, in Latin-1", "a,Gr\xf6\xdfe,Zustand", []string{"m\xe4\xdfig", "gut", "\xfcbel"}, false},
		{"units in Latin-1", "a,\xb0C,class", []string{"1 \xb5m", "2 \xb5m", "\xbd"}, false},
		{"long texts in Latin-1", "a,text,class", []string{strings.Repeat("m\xe4\xdfig gut ", 40), strings.Repeat("ganz \xfcbel ", 40), "gut"}, false},
		{"Chinese, in GB 18030", "a,\xb3\xc7\xca\xd0,\xc0\xe0", []string{"\xb1\xb1\xbe\xa9", "\xc9\xcf\xba\xa3", "\xb3\xc7"}, true},
		{"Russian, in Windows-1251", "a,b,class", []string{"\xcc\xee\xf1\xea\xe2\xe0", "\xd0\xe8\xec", "\xcc\xe8\xf0"}, true},
		{"Japanese, in Shift JIS, with English names", "amount,town,excellent_class", []string{"\x91\xe5\x8d\xe3 Osaka prefecture", "Kyoto", "Tokyo"}, true},
		{"Chinese, in UTF-8", "a,城市,class", []string{"北京", "上海", "西安"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := survey(t, tableText(c.header, 120, func(i int) string { return fmt.Sprintf("%d,%s,%d", i*i, c.words[i%3], i%2) }))
			p, err := s.Plan(t.Context(), 2, AnyTask)
			if err != nil {
				t.Fatal(err)
			}
			notes, err := s.Notes(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if noted := strings.Contains(strings.Join(notes, "\n"), "iconv -f GB18030 -t UTF-8"); noted != c.noted {
				t.Errorf("notes are %q; want one about the encoding: %t", notes, c.noted)
			}
		})
	}
}
