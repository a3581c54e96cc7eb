package config

import (
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// dialect returns the lines that say how the table is written.
func (p *Template) dialect() (lines []string) {
	o := p.Survey.Options
	line := func(key, value, comment string) {
		lines = append(lines, key+" = "+value+"   # "+comment)
	}
	if o.Format != table.CSV {
		line("format", tomlString(string(o.Format)), "the columns have names")
		return lines
	}
	if o.Separator != ',' {
		line("separator", tomlString(string(o.Separator)), "of the columns")
	}
	if o.Quote != '"' {
		line("quote", tomlString(string(o.Quote)), "around fields")
	}
	if o.Comment != 0 {
		line("comment", tomlString(string(o.Comment)), "begins lines that are left out")
	}
	if o.Skip > 0 {
		line("skip_lines", strconv.Itoa(o.Skip), "before the table")
	}
	if o.Encoding != "" {
		line("encoding", tomlString(o.Encoding), "Latin-1, or Windows-1252")
	}
	if o.Decimal != 0 {
		line("decimal", tomlString(string(o.Decimal)), "the decimal mark")
	}
	if o.Thousands != 0 {
		line("thousands", strconv.QuoteToASCII(string(o.Thousands)), "between groups of three digits")
	}
	if o.Header {
		line("header", "true", "the first row has the names of the columns")
		if o.HeaderRows > 1 {
			line("header_rows", strconv.Itoa(o.HeaderRows), "rows of names, joined by points")
		}
	} else {
		line("header", "false", "the first row is an example already")
	}
	return lines
}

// columns returns the lines that say what the columns hold.
func (p *Template) columns() (lines []string) {
	var drop, categories, texts, dates, parts, units, na []string
	missing := p.Plan.Test != nil && p.Plan.Test.Missing
	for _, u := range p.Plan.Uses {
		switch {
		case u.Weight, u.Group:
			continue
		case u.Drop:
			drop = append(drop, p.columnName(u.Name))
			continue
		case u.Kind == dataset.KindCategory && (u.Words || u.Name != p.Survey.Columns[p.Plan.Label].Name):
			categories = append(categories, p.columnName(u.Name))
		case u.Kind == dataset.KindText:
			texts = append(texts, p.columnName(u.Name))
		case u.Kind == dataset.KindDate:
			dates = append(dates, tomlString(u.Name)+" = "+tomlString(u.Form))
			if len(u.Parts) > 0 {
				parts = append(parts, tomlString(u.Name)+" = "+tomlWords(u.Parts))
			}
		}
		if u.Unit != "" {
			units = append(units, tomlString(u.Name)+" = "+tomlString(u.Unit))
		}
		if len(u.NA) > 0 {
			na = append(na, tomlString(u.Name)+" = "+tomlWords(u.NA))
		}
		missing = missing || u.Missing > 0 && u.Kind != dataset.KindText
	}
	if len(drop) > 0 {
		lines = append(lines, "drop = "+tomlList(drop)+"   # columns that are left out")
	}
	if len(categories) > 0 {
		lines = append(lines, "categories = "+tomlList(categories)+"   # columns of words")
	}
	if len(texts) > 0 {
		lines = append(lines, "texts = "+tomlList(texts)+"   # columns of texts")
	}
	inline := func(key string, entries []string, comment string) {
		if len(entries) > 0 {
			lines = append(lines, key+" = { "+strings.Join(entries, ", ")+" }   # "+comment)
		}
	}
	inline("dates", dates, "how they are written")
	inline("date_parts", parts, "inputs next to the days since 1970")
	inline("units", units, "of numbers, as in 12 kg")
	inline("na_values", na, "words that count as missing")
	if missing {
		lines = append(lines, `missing = "fill"   # by the mean; rows without a label are left out; or "error"`)
	}
	return lines
}

// tomlWords returns a list of strings.
func tomlWords[S ~string](words []S) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = tomlString(string(w))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// columnName returns a column as a list has it.
func (p *Template) columnName(name string) string {
	if !p.hasNames() {
		return name // its number
	}
	return tomlString(name)
}
