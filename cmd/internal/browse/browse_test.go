package browse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// browser shows tensors of so many numbers each.
func browser(t *testing.T, sizes map[string]int) *Model {
	t.Helper()
	var parts []ckptfmt.Part
	for name, n := range sizes {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i)
		}
		x, err := ckptfmt.FromValues([]int64{int64(n)}, v)
		if err != nil {
			t.Fatal(err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Data)), nil }
		if n == 13 {
			open = func() (io.ReadCloser, error) { return nil, errors.New("bad luck\x1b[2J") }
		}
		parts = append(parts, ckptfmt.WholePart(name, x.DType, x.Shape, open))
	}
	r, err := ckptfmt.NewPartsReader(parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), "\x1b[2J/model.ckpt-9", r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// press sends keys, and what their commands answer.
func press(t *testing.T, m *Model, keys ...string) {
	t.Helper()
	special := map[string]tea.KeyType{
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "enter": tea.KeyEnter, "esc": tea.KeyEsc,
		"backspace": tea.KeyBackspace, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
	}
	for _, k := range keys {
		msg := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
		if kind, ok := special[k]; ok {
			msg = tea.KeyMsg{Type: kind}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			m.Update(cmd())
		}
	}
}

// names are the visible rows; the selected one has a star.
func names(m *Model) string {
	var list []string
	for i, r := range m.rows {
		name := r.name
		if i == m.at {
			name += "*"
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

var small = map[string]int{"net/d1/kernel": 100, "net/d1/bias": 10, "net/d2/kernel": 300, "step": 1}

func TestTree(t *testing.T) {
	m := browser(t, small)
	for _, c := range []struct{ keys, want string }{
		{"", "net/* step"},
		{"right", "net/* d1/ d2/ step"},
		{"down right down", "net/ d1/ bias* kernel d2/ step"},
		{"left", "net/ d1/* bias kernel d2/ step"},
		{"left", "net/ d1/* d2/ step"},
		{"enter", "net/ d1/* bias kernel d2/ step"},
		{"enter end", "net/ d1/ d2/ step*"},
		{"home s", "net/* d2/ d1/ step"},
		{"down down right", "net/ d2/ d1/* kernel bias step"},
		{"s pgdown", "net/ d1/ bias kernel d2/ step*"},
		{"pgup up", "net/* d1/ bias kernel d2/ step"},
	} {
		if press(t, m, strings.Fields(c.keys)...); names(m) != c.want {
			t.Errorf("after %q: %s, want %s", c.keys, names(m), c.want)
		}
	}
	if m := browser(t, map[string]int{"a.b.c": 1, "a.b.d": 1, "e": 1}); names(m) != "a.* e" {
		t.Errorf("names with dots: %s", names(m))
	}
	if view := m.View(); !strings.Contains(view, "?[2J/model.ckpt-9  4 tensors, 1.6 KiB") || !strings.Contains(view, "3 tensors") {
		t.Errorf("the list is\n%s", view)
	}
}

// TestNarrow has names that are longer than the terminal is wide: their ends and the sizes stay.
func TestNarrow(t *testing.T) {
	m := browser(t, map[string]int{"encoder_of_the_sentences/attention_output_kernel": 1, "b": 1})
	m.title, m.width = "/home/somebody/trainings/model.ckpt-9", 40
	view := m.View()
	for _, want := range []string{"...rainings/model.ckpt-9  2 tensors, 8 B\n", "+ ...e_sentences/  1 tensors         4 B\n"} {
		if !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
}

func TestFilter(t *testing.T) {
	m := browser(t, small)
	for _, c := range []struct{ keys, want string }{
		{"/ K E", "net/* d1/ kernel d2/ kernel"},
		{"r   d 2", "net/* d2/ kernel"},
		{"x", ""},
		{"backspace", "net/* d2/ kernel"},
		{"enter down down", "net/ d2/ kernel*"},
		{"esc", "net/ step*"},
		{"/ s t e esc", "net/* step"},
	} {
		keys := strings.Split(strings.ReplaceAll(c.keys, "   ", " SPACE "), " ")
		for i := range keys {
			if keys[i] == "SPACE" {
				keys[i] = " "
			}
		}
		if press(t, m, keys...); names(m) != c.want {
			t.Errorf("after %q: %s, want %s", c.keys, names(m), c.want)
		}
	}
}

func TestDetail(t *testing.T) {
	m := browser(t, map[string]int{"a": 1600, "b": 13, "c": 0, "s/d": 1})
	press(t, m, "enter")
	view := m.View()
	for _, want := range []string{"float32 [1600]", "min 0  max 1599  mean 799.5", "1600 numbers, 1 zeros", "# 100", "esc goes back"} {
		if !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
	if n := strings.Count(view, " 100\n"); n < bins-1 {
		t.Errorf("%d parts of 100 numbers in\n%s", n, view)
	}
	if press(t, m, "down"); !strings.Contains(m.View(), "bad luck?[2J") {
		t.Errorf("a tensor that cannot be read:\n%s", m.View())
	}
	if press(t, m, "down"); !strings.Contains(m.View(), "0 numbers") {
		t.Errorf("an empty tensor:\n%s", m.View())
	}
	press(t, m, "down", "up", "esc", "up")
	if names(m) != "a* b c s/" {
		t.Errorf("back in the list at %s", names(m))
	}
}

// A type that TensorFlow lacks has its own name, and no numbers.
func TestForeignType(t *testing.T) {
	p := ckptfmt.WholePart("scale", 0, []int64{2}, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("ab")), nil })
	p.Foreign, p.Bytes = "F8_E8M0", 2
	r, err := ckptfmt.NewPartsReader([]ckptfmt.Part{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), "x.safetensors", r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(m.View(), "F8_E8M0 [2]") {
		t.Errorf("the list is\n%s", m.View())
	}
	if press(t, m, "enter"); !strings.Contains(m.View(), "elements of F8_E8M0 are not shown as numbers") {
		t.Errorf("the tensor is\n%s", m.View())
	}
}

// The view fits every window, and quits are commands.
func TestWindow(t *testing.T) {
	many := map[string]int{"a\nb": 3, "": 2}
	for i := range 200 {
		many[fmt.Sprintf("layer%03d", i)] = i%5 + 1
	}
	m := browser(t, many)
	for _, want := range []string{"\n  a?b  ", `  ""  `} {
		if view := strings.ReplaceAll(m.View(), reverse, ""); !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 20, Height: 5}, {Width: 1, Height: 1}, {Width: 200, Height: 50}, {Width: 40, Height: 10}} {
		m.Update(size)
		for _, keys := range []string{"home", "pgdown", "end", "enter", "esc", "up"} {
			press(t, m, keys)
			lines := strings.Split(m.View(), "\n")
			if len(lines) > size.Height {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				line = strings.NewReplacer(reverse, "", reset, "").Replace(line)
				if len([]rune(line)) > size.Width {
					t.Errorf("%v: line %q", size, line)
				}
			}
		}
	}
	if press(t, m, "end"); !strings.Contains(m.View(), "layer199") {
		t.Errorf("the end is not in view:\n%s", m.View())
	}
	m.Update(tea.WindowSizeMsg{})
	if m.width != 40 || m.height != 10 {
		t.Errorf("a terminal of unknown size is %d, %d", m.width, m.height)
	}
	for _, k := range []tea.KeyMsg{{Type: tea.KeyCtrlC}, {Type: tea.KeyRunes, Runes: []rune("q")}} {
		if _, cmd := m.Update(k); cmd == nil || cmd() != tea.Quit() {
			t.Errorf("%v does not quit", k)
		}
	}
}

// The page of a tensor of strings has the first of them.
func TestStrings(t *testing.T) {
	list := [][]byte{[]byte("one\x1b[2J"), nil, bytes.Repeat([]byte("x"), 300)}
	for range 20 {
		list = append(list, []byte("more"))
	}
	p := ckptfmt.WholePart("words", tfpb.DataType_DT_STRING, []int64{int64(len(list))}, nil)
	p.Strings = func() ([][]byte, error) { return list, nil }
	r, err := ckptfmt.NewPartsReader([]ckptfmt.Part{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), "x.npz", r)
	if err != nil {
		t.Fatal(err)
	}
	press(t, m, "enter")
	page := m.View()
	for _, want := range []string{"string [23]", `"one\x1b[2J"`, `""`, `"xxx`, "and 7 more"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	if strings.Contains(page, "\x1b[2J") {
		t.Error("the terminal would obey a string")
	}
}
