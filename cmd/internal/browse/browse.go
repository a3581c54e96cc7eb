// Package browse is a browser of tensors for a terminal: their scopes as a tree,
// a filter that works while it is typed, and for one tensor its statistics and a
// histogram.
//
// [Model] is a model of bubbletea: it changes by messages alone and says what is
// to be shown as text, so it is tested without a terminal. Tensors are read by
// commands, which bubbletea runs in goroutines of its own; these read a piece at
// a time, and end when the context does.
package browse

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Run shows the tensors of a checkpoint until the user quits or ctx ends.
func Run(ctx context.Context, title string, r ckptfmt.Reader) error {
	m, err := New(ctx, title, r)
	if err != nil {
		return err
	}
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithAltScreen()).Run()
	return err
}

// Model is the state of the browser.
type Model struct {
	ctx    context.Context // ends the reading of tensors
	title  string
	reader ckptfmt.Reader
	root   *node
	rows   []row

	width, height int
	at, top       int // the selected row, and the first visible one
	filter        string
	typing        bool // the filter
	bySize        bool
	detail        *node             // the tensor that is shown, nil for the list
	figures       map[*node]figures // that were computed
}

// New returns the browser of a checkpoint, with the outermost scopes. Tensors that
// are damaged are shown as far as they are known.
func New(ctx context.Context, title string, r ckptfmt.Reader) (*Model, error) {
	var list []ckptfmt.TensorInfo
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		list = append(list, info)
	}
	m := &Model{ctx: ctx, title: title, reader: r, root: newTree(list), width: 80, height: 24, figures: make(map[*node]figures)}
	m.root.sortBy(false)
	m.refresh()
	return m, nil
}

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return nil }

// bins is the number of lines of a histogram.
const bins = 16

// figures are what is computed of a tensor.
type figures struct {
	of     *node
	stats  inspect.Stats
	counts []int64
	texts  []string // of a tensor of strings, the first ones
	err    error
}

// compute returns the command that reads a tensor, once for its range and once to
// count.
func (m *Model) compute(n *node) tea.Cmd {
	return func() tea.Msg {
		f := figures{of: n}
		if d := n.info.DType; d == tfpb.DataType_DT_STRING || d == tfpb.DataType_DT_VARIANT {
			f.texts, f.err = firstTexts(m.reader, n.path)
		} else {
			f.stats, f.counts, f.err = measure(m.ctx, m.reader, n.path)
		}
		return f
	}
}

// longestText is how many bytes of a string are shown.
const longestText = 200

// firstTexts returns the first strings of a tensor as they are quoted in a program.
func firstTexts(r ckptfmt.Reader, name string) ([]string, error) {
	t, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	list := []string{} // not nil, which is of numbers
	for _, text := range t.Strings[:min(bins, len(t.Strings))] {
		list = append(list, strconv.Quote(string(text[:min(longestText, len(text))])))
	}
	if more := len(t.Strings) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list, nil
}

func measure(ctx context.Context, r ckptfmt.Reader, name string) (stats inspect.Stats, counts []int64, err error) {
	t, err := r.OpenTensor(name)
	if err != nil {
		return stats, nil, err
	}
	if t.Info.Foreign != "" {
		return stats, nil, fmt.Errorf("%w: elements of %s are not shown as numbers", ckptfmt.ErrType, t.Info.Foreign)
	}
	t.Watch = func(int) error { return ctx.Err() }
	if stats, err = inspect.StatsFrom(t, t.Info.DType); err != nil || stats.Count == stats.NaN+stats.Inf {
		return stats, nil, err
	}
	if t, err = r.OpenTensor(name); err != nil {
		return stats, nil, err
	}
	t.Watch = func(int) error { return ctx.Err() }
	counts, err = inspect.HistogramFrom(t, t.Info.DType, stats.Min, stats.Max, bins)
	return stats, counts, err
}

// Update implements [tea.Model].
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 { // not all terminals know
			m.width, m.height = msg.Width, msg.Height
			m.scroll()
		}
	case figures:
		m.figures[msg.of] = msg
	case tea.KeyMsg:
		return m, m.key(msg)
	}
	return m, nil
}

func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyCtrlC {
		return tea.Quit
	}
	switch {
	case m.detail != nil:
		return m.keyInDetail(k)
	case m.typing && m.typed(k):
		return nil
	}
	return m.keyInList(k)
}

func (m *Model) keyInDetail(k tea.KeyMsg) tea.Cmd {
	switch k.String() {
	case "q":
		return tea.Quit
	case "esc", "left", "enter", "backspace", "h":
		m.detail = nil
	case "up", "k":
		return m.neighbour(-1)
	case "down", "j":
		return m.neighbour(1)
	}
	return nil
}

// neighbour shows the tensor before or after in the list.
func (m *Model) neighbour(step int) tea.Cmd {
	for i := m.at + step; i >= 0 && i < len(m.rows); i += step {
		if m.rows[i].info != nil {
			m.at = i
			m.scroll()
			return m.show(m.rows[i].node)
		}
	}
	return nil
}

// show opens the page of a tensor.
func (m *Model) show(n *node) tea.Cmd {
	m.detail = n
	if _, known := m.figures[n]; known {
		return nil
	}
	return m.compute(n)
}

// typed takes a key for the filter, and reports whether it was one.
func (m *Model) typed(k tea.KeyMsg) bool {
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		m.filter += string(k.Runes)
	case tea.KeyBackspace:
		runes := []rune(m.filter)
		m.filter = string(runes[:max(0, len(runes)-1)])
		m.typing = len(runes) > 0
	case tea.KeyEsc:
		m.filter, m.typing = "", false
	case tea.KeyEnter:
		m.typing = false
	default:
		return false
	}
	m.at = 0
	m.refresh()
	return true
}

func (m *Model) keyInList(k tea.KeyMsg) tea.Cmd {
	page := m.listHeight()
	switch k.String() {
	case "q":
		return tea.Quit
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
		m.refresh()
	case "s":
		m.bySize = !m.bySize
		m.root.sortBy(m.bySize)
		m.refresh()
	case "up", "k":
		m.at--
	case "down", "j":
		m.at++
	case "pgup":
		m.at -= page
	case "pgdown":
		m.at += page
	case "home", "g":
		m.at = 0
	case "end", "G":
		m.at = len(m.rows) - 1
	case "left", "h":
		m.leave()
	case "right", "l", "enter", " ":
		return m.enter(k.String() == "enter" || k.String() == " ")
	}
	m.scroll()
	return nil
}

// enter opens the selected scope or tensor; toggle closes a scope that is open.
func (m *Model) enter(toggle bool) tea.Cmd {
	if m.at >= len(m.rows) {
		return nil
	}
	n := m.rows[m.at].node
	if n.info != nil {
		return m.show(n)
	}
	n.open = !n.open || !toggle
	m.refresh()
	return nil
}

// leave closes the selected scope, or goes to the one that has what is selected.
func (m *Model) leave() {
	if m.at >= len(m.rows) {
		return
	}
	n := m.rows[m.at].node
	if n.info == nil && n.open && m.filter == "" {
		n.open = false
		m.refresh()
		return
	}
	for i, r := range m.rows {
		if r.node == n.parent {
			m.at = i
		}
	}
}

func (m *Model) refresh() {
	m.rows = m.root.rows(m.filter)
	m.scroll()
}

// listHeight is the number of rows between head and foot.
func (m *Model) listHeight() int { return max(1, m.height-3) }

// scroll keeps the selected row in the list and in view.
func (m *Model) scroll() {
	m.at = max(0, min(m.at, len(m.rows)-1))
	m.top = max(0, min(m.top, m.at, len(m.rows)-1))
	m.top = max(m.top, m.at-m.listHeight()+1)
}

// View implements [tea.Model].
func (m *Model) View() string {
	lines := m.listLines()
	if m.detail != nil {
		lines = m.detailLines()
	}
	if len(lines) > m.height {
		lines = append(lines[:max(0, m.height-1)], lines[len(lines)-1])
	}
	for i, line := range lines {
		lines[i] = cut(line, m.width)
	}
	return strings.Join(lines, "\n")
}
