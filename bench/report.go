package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spread is what several rounds gave.
type spread struct{ min, median, max float64 }

func spreadOf(values []float64) spread {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return spread{min: s[0], median: (s[(n-1)/2] + s[n/2]) / 2, max: s[n-1]}
}

// cells returns the three values as columns of a table.
func (s spread) cells(unit string) string {
	return fmt.Sprintf("%s%s | %s%s | %s%s", number(s.min), unit, number(s.median), unit, number(s.max), unit)
}

// number prints three digits, more only in front of the point.
func number(v float64) string {
	if math.IsInf(v, 0) {
		return "∞"
	}
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// writeReports writes a table for each way in which the race is measured.
func writeReports(out io.Writer, r race, o *outcome) error {
	err := writeReport(out, r, o)
	r.About = ""
	r.Contestants = slices.Clone(r.Contestants)
	for i := range r.Contestants {
		r.Contestants[i].Bar = 0
	}
	for _, m := range r.Also {
		r.Measure, r.Better = m.Measure, m.Better
		err = errors.Join(err, writeReport(out, r, o))
	}
	return err
}

// writeReport writes the race's table. It fails if a ratio could not be given.
func writeReport(out io.Writer, r race, o *outcome) error {
	fmt.Fprintf(out, "\n### %s\n\n", r.Name)
	if r.About != "" {
		fmt.Fprintf(out, "%s; ", r.About)
	}
	fmt.Fprintf(out, "%s, %s is better, %d rounds", r.Measure, r.Better, len(o.results[0]))
	if r.CPUs > 0 {
		fmt.Fprintf(out, ", on %d CPU", r.CPUs)
	}
	fmt.Fprint(out, "\n\n| contestant | min | median | max | ratio min | median | max | bar | |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
	var odd []string
	for i, c := range r.Contestants {
		row, same, err := r.row(o, i)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if !same {
			odd = append(odd, c.Name)
		}
		fmt.Fprintf(out, "| %s | %s |\n", c.Name, row)
	}
	if odd == nil {
		return nil
	}
	return fmt.Errorf("not the same work as ours, so no ratio: %s", strings.Join(odd, ", "))
}

// row returns the columns after the name of contestant i, and whether its work
// was the same as ours.
func (r race) row(o *outcome, i int) (cells string, same bool, err error) {
	theirs := o.results[i]
	if len(theirs) == 0 {
		return "| | | | | | | not installed", true, nil
	}
	values, err := valuesOf(theirs, r.Measure)
	if err != nil {
		return "", true, err
	}
	measured := spreadOf(values).cells("")
	if work := oddWork(o.results[0], theirs); work != "" && !r.Contestants[i].Alike {
		return fmt.Sprintf("%s | | | | | other work: %s", measured, work), false, nil
	}
	if i == 0 {
		return measured + " | | | | | ours", true, nil
	}
	own, err := valuesOf(o.results[0], r.Measure)
	if err != nil {
		return "", true, err
	}
	for round := range values {
		values[round] = ratio(own[round], values[round], r.Better)
	}
	return fmt.Sprintf("%s | %s", measured, r.Contestants[i].judge(spreadOf(values))), true, nil
}

// judge returns the columns of the ratios, the bar, and whether it is met.
func (c contestant) judge(ratios spread) string {
	bar, verdict := "", ""
	if c.Limit {
		verdict = "limit"
	}
	switch {
	case c.Bar == 0:
	case ratios.median >= c.Bar:
		bar, verdict = number(c.Bar)+"×", "met"
	default:
		bar, verdict = number(c.Bar)+"×", "missed"
	}
	return fmt.Sprintf("%s | %s | %s", ratios.cells("×"), bar, verdict)
}

func valuesOf(results []result, measure string) ([]float64, error) {
	var values []float64
	for _, r := range results {
		v, err := r.value(measure)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// oddWork returns the first work of theirs that is not the one that ours did
// in every round, or "".
func oddWork(ours, theirs []result) string {
	for _, r := range theirs {
		if r.Work != ours[0].Work {
			return r.Work
		}
	}
	return ""
}

// ratio returns how many times better ours is.
func ratio(ours, theirs float64, better string) float64 {
	if better == betterMore {
		ours, theirs = theirs, ours
	}
	if ours == theirs {
		return 1
	}
	return theirs / ours
}

// machine returns a line that names what the numbers were measured on.
func machine() string {
	return fmt.Sprintf("%s, %d CPUs, %s/%s, %s, %s", cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), time.Now().Format(time.DateOnly))
}

// cpuModel returns the processor's name where the system has it.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
