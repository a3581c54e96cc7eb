package child

import (
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func report(step int64, pairs ...any) *Report {
	r := &Report{Step: step}
	for i := 0; i < len(pairs); i += 2 {
		r.Values = append(r.Values, Value{pairs[i].(string), pairs[i+1].(float64)})
	}
	return r
}

func TestParseReport(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		name, line string
		want       *Report
		pure       bool
	}{
		{"JSON", `{"step": 120, "loss": 0.25, "lr": 1e-3}`, report(120, "loss", 0.25, "lr", 0.001), true},
		{"global_step", `{"global_step": 7, "a": 1}`, report(7, "a", 1.0), true},
		{"global_step wins", `{"global_step": 7, "step": 1, "a": 1}`, report(7, "a", 1.0), true},
		{"global_step wins from behind", `{"step": 1, "global_step": 7}`, report(7), true},
		{"two steps", "step=1 step=2", report(2), true},
		{"nested", `{"train": {"loss": 1, "acc": {"top1": 2}}, "step": 3}`, report(3, "train/loss", 1.0, "train/acc/top1", 2.0), true},
		{"a nested step is a curve", `{"step": 3, "lr": {"step": 5}}`, report(3, "lr/step", 5.0), true},
		{"whole step as float", `{"step": 3.0, "a": 1}`, report(3, "a", 1.0), true},
		{"bare NaN", `{"step": 1, "a": NaN, "b": Infinity, "c": -Infinity}`, report(1, "a", math.NaN(), "b", inf, "c", -inf), true},
		{"NaN in a string", `{"step": 1, "say \"NaN": "NaN", "a": 2}`, report(1, "a", 2.0), true},
		{"too large for a float", `{"step": 1, "a": 1e999}`, report(1, "a", inf), true},
		{"others are passed over", `{"step": 1, "s": "x", "t": true, "n": null, "l": [1, {"x": 2}, [3]], "a": 4}`, report(1, "a", 4.0), true},
		{"spaces around", "  {\"step\":1}\t", report(1), true},
		{"no step", `{"loss": 1}`, nil, false},
		{"step in words", `{"step": "1", "loss": 1}`, nil, false},
		{"negative step", `{"step": -1, "loss": 1}`, nil, false},
		{"half a step", `{"step": 1.5, "loss": 1}`, nil, false},
		{"the largest step", `{"step": 9007199254740991}`, report(1<<53 - 1), true},
		{"a step that is not exact", `{"step": 9007199254740992}`, nil, false},
		{"huge step", `{"step": 1e300, "loss": 1}`, nil, false},
		{"broken", `{"step": 1, "loss": `, nil, false},
		{"no JSON", `{step: 1}`, nil, false},
		{"two objects", `{"step": 1} {"step": 2}`, nil, false},
		{"deep", `{"step": 1, "a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, nil, false},
		{"deep objects", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), nil, false},
		{"a string without an end", `{"step": 1, "a": NaN, "b`, nil, false},
		{"no UTF-8", "{\"step\": 1, \"\xff\": 2}", nil, false},

		{"pairs", "step=120 loss=0.25 val/loss=4e-1", report(120, "loss", 0.25, "val/loss", 0.4), true},
		{"pairs with commas", "global_step=120, loss=0.25; acc=1", report(120, "loss", 0.25, "acc", 1.0), true},
		{"a step in groups", "step=1,234,567, loss=0.5", report(1234567, "loss", 0.5), true},
		{"groups at the end", "loss=0.5;global_step=12,000", report(12000, "loss", 0.5), true},
		{"no groups", "step=5,loss=1 step=12,34 step=012,000 step=1,0000", report(1, "loss", 1.0), false},
		{"another number in groups", "step=5 loss=1,234", report(5, "loss", 1.0), false},
		{"pairs, nan", "step=1 loss=nan b=-inf", report(1, "loss", math.NaN(), "b", -inf), true},
		{"pairs among words", "INFO [train] step=5 loss=0.5 eta=3h", report(5, "loss", 0.5), false},
		{"quotes", `step=5 msg="it is loss=3 now" loss=1`, report(5, "loss", 1.0), false},
		{"quotes in quotes", `step=5 msg="it is \" loss=3" loss=1`, report(5, "loss", 1.0), false},
		{"no quotes", `step=5 dir=c:\ loss=1`, report(5, "loss", 1.0), false},
		{"a short word at the end", "step=5 loss=1 s", report(5, "loss", 1.0), false},
		{"open quote", `step=5 msg="loss=3`, report(5), false},
		{"step alone", "step=5", report(5), true},
		{"odd keys", "step=5 =3 3=4 a(b)=5 ok=6", report(5, "ok", 6.0), false},
		{"keys", "step=5 A=1 Z=2 a=3 z=4 x0=5 x9=6 é=7 \u0080=8", report(5, "A", 1.0, "Z", 2.0, "a", 3.0, "z", 4.0, "x0", 5.0, "x9", 6.0, "é", 7.0, "\u0080", 8.0), true},
		{"no keys", "step=5 [=1 @=2 {=3 `=4 0=5 ok=6", report(5, "ok", 6.0), false},
		{"no step among pairs", "loss=3 substep=4", nil, false},
		{"words", "epoch 3: loss 0.2", nil, false},
		{"nothing", "", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, pure := ParseReport(tc.line)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" || pure != tc.pure {
				t.Errorf("pure %v, want %v; report (-want +got):\n%s", pure, tc.pure, diff)
			}
		})
	}
}

func TestParseReportTime(t *testing.T) {
	r, _ := ParseReport(`{"step": 1, "wall_time": 1700000000.25, "a": 1}`)
	if want := time.Unix(1700000000, 250_000_000); r == nil || !r.Time.Equal(want) || len(r.Values) != 1 {
		t.Errorf("report %+v, want time %v and one value", r, want)
	}
	r, _ = ParseReport(`{"step": 1, "wall_time": -3}`)
	if r == nil || !r.Time.IsZero() {
		t.Errorf("report %+v, want no time", r)
	}
}

func TestParseReportLimits(t *testing.T) {
	many := `{"step":1` + strings.Repeat(`,"a":1`, maxValues) + `}`
	if r, _ := ParseReport(many); r == nil || len(r.Values) != maxValues {
		t.Errorf("%d values give %v", maxValues, r)
	}
	if r, _ := ParseReport(strings.Replace(many, `}`, `,"a":1}`, 1)); r != nil {
		t.Errorf("%d values give a report", maxValues+1)
	}
	if r, _ := ParseReport("step=1 a=2" + strings.Repeat(" ", MaxLine) + "b=3"); r != nil {
		t.Error("a line that is too long gives a report")
	}
	step := regexp.MustCompile(`step=(?P<step>\d+)`)
	for over, want := range map[int]bool{0: true, 1: false} {
		line := "step=1 " + strings.Repeat("a", MaxLine-len("step=1 ")+over)
		if r, _ := ParseReport(line); (r != nil) != want {
			t.Errorf("a line of %d bytes is a report: %v", len(line), !want)
		}
		if r := matchPattern(step, line); (r != nil) != want {
			t.Errorf("a line of %d bytes fits a pattern: %v", len(line), !want)
		}
		if r, _ := ParseReport("step=1 " + strings.Repeat("a", maxTag+over) + "=2"); r == nil || (len(r.Values) == 1) != want {
			t.Errorf("a name of %d bytes gives %v", maxTag+over, r)
		}
	}
	if loss, ok := report(1, "val_loss", 2.0, "eval/loss", 3.0, "loss/train/total", 1.0, "aux_loss", 4.0).Loss(); !ok || loss != 1 {
		t.Errorf("of many losses, %v is that of the training", loss)
	}
	if loss, ok := report(1, "acc", 1.0).Loss(); ok {
		t.Errorf("a report without a loss has the loss %v", loss)
	}
}

func TestMatchPattern(t *testing.T) {
	p := regexp.MustCompile(`^Epoch (?P<epoch>\d+) it (?P<step>\d+): loss (?P<train__loss>\S+)( acc (?P<acc>\S+))?`)
	for _, tc := range []struct {
		name, line string
		want       *Report
	}{
		{"all", "Epoch 1 it 20: loss 0.5 acc 0.75", report(20, "epoch", 1.0, "train/loss", 0.5, "acc", 0.75)},
		{"optional group", "Epoch 1 it 20: loss 0.5", report(20, "epoch", 1.0, "train/loss", 0.5)},
		{"no number", "Epoch 1 it 20: loss none", report(20, "epoch", 1.0)},
		{"no match", "loss 0.5", nil},
	} {
		if diff := cmp.Diff(tc.want, matchPattern(p, tc.line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, tc := range []struct {
		name, in string
		want     []string // with "+" before a piece of a longer line, "~" before what is drawn over, "=" before what was drawn before
	}{
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"empty lines", "\n\n", []string{"", ""}},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}},
		{"drawn over", "10%\r20%\r30%\nnext\n", []string{"~10%", "~20%", "30%", "next"}},
		{"cleared", "10%\r\n", []string{"10%"}},
		{"bars", "\r10%\r   \r20%\n", []string{"~10%", "~   ", "20%"}},
		{"a spinner", "/\r-\r|\n", []string{"~/", "~-", "|"}},
		{"nothing", "", nil},
		{"longest", long + "\nb\n", []string{long, "b"}},
		{"too long", long + "yz\nb\n", []string{"+" + long, "+yz", "b"}},
		{"drawn over behind a piece", long + "yz\rb\nc\n", []string{"+" + long, "b", "c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLineReader(strings.NewReader(tc.in))
			var got []string
			for {
				line, k, err := l.next()
				if err != nil {
					break
				}
				got = append(got, []string{"", "~", "=", "+"}[k]+string(line))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLineReaderAtPauses has a stream that pauses after each of its pieces.
func TestLineReaderAtPauses(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	pieces := []string{"a", "b\n", "\r10%", "\r20%", "|x", "\r   \r30%\n", "c", "c\n", "\r40%", "\nd\n", "\r/", "\r-", "\n", "\r" + long + "y", "z\n", "e"}
	var readers []io.Reader
	for _, piece := range pieces {
		readers = append(readers, strings.NewReader(piece))
	}
	l, got := newLineReader(io.MultiReader(readers...)), []string(nil)
	for {
		line, k, err := l.next()
		if err != nil {
			break
		}
		got = append(got, []string{"", "~", "=", "+"}[k]+string(line))
	}
	want := []string{"ab", "~10%", "~20%", "~20%|x", "~   ", "30%", "cc", "~40%", "=40%", "d", "~/", "~-", "=-", "~" + long[:MaxLine/2-1], "~" + long[:MaxLine-1], "+" + long, "+yz", "e"} // it is read in halves
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestParseJSON has lines of JSON at the limits of what is read.
func TestParseJSON(t *testing.T) {
	nested := func(open, end string, n int) string {
		return `{"step": 1, "x": ` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + "}"
	}
	for line, want := range map[string]bool{
		nested(`{"a": `, "}", maxDepth-1): true, nested(`{"a": `, "}", maxDepth): false,
		nested("[", "]", maxDepth-2): true, nested("[", "]", maxDepth-1): false, nested("[", "]", maxDepth): false,
		nested(`[{"a": `, "}]", maxDepth/2-1): true, nested(`[{"a": `, "}]", maxDepth/2): false, nested(`[{"a": [`, "]}]", maxDepth): false,
		`{"step": 1, "a": }`: false, `{"step": 1, "a": [1, }`: false, `{"step": 1, "a": [}`: false,
		`{"step": 1, "a": [{"b": }]}`: false, `{"step": 1, "a": [[}]]}`: false, `{"step": 1, 2: 3}`: false, `{"step": 1, "a"`: false, `{"step": 1, "a": NaN`: false,
	} {
		if got := parseJSON(line) != nil; got != want {
			t.Errorf("%s is a report: %v", line, got)
		}
	}
	for text, want := range map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)} {
		r := parseJSON(`{"step": 1, "loss": ` + text + "}")
		if r == nil || len(r.Values) != 1 || r.Values[0].Value != want && !math.IsNaN(want) {
			t.Errorf("a loss of %s: %+v", text, r)
		}
	}
	for text, known := range map[string]bool{"0": false, "-1": false, "8589934592": false, "1.5": true, "8589934591": true} {
		if r := parseJSON(`{"step": 1, "wall_time": ` + text + "}"); r == nil || r.Time.IsZero() == known {
			t.Errorf("wall_time %s: %+v", text, r)
		}
	}
}

func FuzzParseReport(f *testing.F) {
	for _, line := range []string{
		`{"step": 120, "loss": NaN, "l": [1, {"a": "\""}], "x": {"y": -Infinity}}`, `{"step":1,"wall_time":1e300}`,
		`step=5 msg="a \" b" loss=1e-3, val/loss=nan; x=0x1p-2`, "10%\rstep=1 a=2\r\n", `{"a":` + strings.Repeat("[{", 40),
	} {
		f.Add(line)
	}
	pattern := regexp.MustCompile(`(?P<step>\d+).*?(?P<a__b>\S+)`)
	f.Fuzz(func(t *testing.T, text string) {
		for l := newLineReader(strings.NewReader(text)); ; {
			line, _, err := l.next()
			if err != nil {
				return
			}
			if len(line) > MaxLine {
				t.Fatalf("a line of %d bytes", len(line))
			}
			r, pure := ParseReport(string(line))
			check(t, r)
			check(t, matchPattern(pattern, string(line)))
			if pure && r == nil {
				t.Fatal("nothing is a pure report")
			}
		}
	})
}

// check holds a report against what is promised of all.
func check(t *testing.T, r *Report) {
	if r == nil {
		return
	}
	if r.Step < 0 || len(r.Values) > maxValues || r.Time.Year() > 2300 {
		t.Fatalf("report %+v", r)
	}
	for _, v := range r.Values {
		if v.Tag == "" || len(v.Tag) > maxTag {
			t.Fatalf("value %+v", v)
		}
	}
}
