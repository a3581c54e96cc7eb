package browse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

const (
	reverse = "\x1b[7m"
	reset   = "\x1b[0m"
)

// listLines are the lines of the list: a head, the rows, and what the keys do.
func (m *Model) listLines() []string {
	sum := fmt.Sprintf("  %d tensors, %s", m.root.tensors, terminal.Size(m.root.bytes))
	lines := []string{fit(nameText(m.title), m.width-len(sum)) + sum}
	for i := m.top; i < min(len(m.rows), m.top+m.listHeight()); i++ {
		line := m.rowText(m.rows[i])
		if i == m.at {
			line = reverse + cut(line, m.width) + reset
		}
		lines = append(lines, line)
	}
	if len(m.rows) == 0 {
		lines = append(lines, "no tensor has all of these words in its name")
	}
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	foot := "arrows move and open  / filters  s sorts by size  q quits"
	if m.bySize {
		foot = "arrows move and open  / filters  s sorts by name  q quits"
	}
	if m.typing || m.filter != "" {
		foot = "/" + strings.ReplaceAll(plain(m.filter), "\n", "?") // which may be pasted
		if m.typing {
			foot += "_"
		}
	}
	return append(lines, "", foot)
}

func (m *Model) rowText(r row) string {
	mark := "  "
	if r.info == nil {
		mark = "+ "
		if r.open || m.filter != "" {
			mark = "- "
		}
	}
	left, right := strings.Repeat("  ", r.depth)+mark, terminal.Size(r.bytes)
	if r.info == nil {
		right = fmt.Sprintf("%d tensors  %10s", r.tensors, right)
	} else {
		right = fmt.Sprintf("%s  %10s", kindText(r.info), right)
	}
	left += fit(nameText(r.name), m.width-len(left)-2-len(right))
	return left + strings.Repeat(" ", max(2, m.width-len([]rune(left))-len(right))) + right
}

// fit shortens a name to a width, as far as there is any. Its end stays: that tells it from
// others.
func fit(name string, width int) string {
	const gap = "..."
	if runes := []rune(name); len(runes) > width && width > len(gap) {
		return gap + string(runes[len(runes)-width+len(gap):])
	}
	return name
}

// detailLines are the page of a tensor.
func (m *Model) detailLines() []string {
	n := m.detail
	lines := []string{nameText(n.path), fmt.Sprintf("%s, %s", kindText(n.info), terminal.Size(n.bytes)), ""}
	f, known := m.figures[n]
	switch {
	case !known:
		lines = append(lines, "reading ...")
	case f.err != nil:
		lines = append(lines, strings.Split(plain(f.err.Error()), "\n")...)
	case f.texts != nil:
		lines = append(lines, f.texts...)
	default:
		s := f.stats
		lines = append(lines,
			fmt.Sprintf("min %.6g  max %.6g  mean %.6g  norm %.6g", s.Min, s.Max, s.Mean, s.Norm),
			fmt.Sprintf("%d numbers, %d zeros, %d NaN, %d infinite", s.Count, s.Zeros, s.NaN, s.Inf), "")
		lines = append(lines, m.histogram(f)...)
	}
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	return append(lines, "", "up and down show the next tensor  esc goes back  q quits")
}

func kindText(t *ckptfmt.TensorInfo) string { return t.TypeName() + " " + dtype.ShapeText(t.Shape) }

// histogram draws a bar for each part of the range.
func (m *Model) histogram(f figures) []string {
	if len(f.counts) == 0 {
		return nil
	}
	most := slices.Max(f.counts)
	step := f.stats.Max/bins - f.stats.Min/bins
	var lines []string
	for i, n := range f.counts {
		count := strconv.FormatInt(n, 10)
		room := max(1, m.width-16-len(count))
		bar := int(float64(n) / float64(max(most, 1)) * float64(room))
		if n > 0 {
			bar = max(bar, 1)
		}
		lines = append(lines, fmt.Sprintf("%12.5g  %s %s", f.stats.Min+float64(i)*step, strings.Repeat("#", bar), count))
	}
	return lines
}

// nameText is a name on one line, which can be seen even if it is empty.
func nameText(name string) string {
	if name == "" {
		return `""`
	}
	return strings.ReplaceAll(plain(name), "\n", "?")
}

// plain replaces what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// cut shortens a line to a width, without its marks.
func cut(line string, width int) string {
	if strings.HasPrefix(line, reverse) {
		return line // it was cut before
	}
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(0, width)])
	}
	return line
}
