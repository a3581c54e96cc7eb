package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// maxDistinct is how many different values of a column are counted.
const maxDistinct = 10000

// Profile describes the values of a column of a table.
type Profile struct {
	Name string
	// Rows and Missing count the fields, and those that mean a missing value.
	Rows, Missing int
	// Distinct counts the different values; Many says that there are more.
	Distinct int
	Many     bool
	// Example is the first value.
	Example string

	values     map[string]int // how often each is there, nil once there are many
	numbers    int
	moments    Moments // of the numbers
	integers   int
	words      int // neither numbers nor missing
	codes      int // numbers that begin with a needless zero, such as 007
	unit       string
	units      int             // fields that are a number with the unit
	measured   bool            // the unit is one, however few different numbers there are
	magnitudes int             // fields such as 1.2K
	spare      int             // those of them that have another unit than p.unit
	foreign    int             // fields that are numbers with a comma for the decimal mark, or points between thousands
	bounds     int             // fields that are a number known from one side, such as >=90
	odd        map[string]bool // fields that are neither, as long as they are few
	texts      bool            // some are too long for words
	blanks     int             // within the words
	counts     bool            // each is one more than that of the row before
	start      int64           // of the count
	next       int64           // of the count
	forms      []dateForm
	dated      int             // fields that have one of the forms
	undated    map[string]bool // words that have none, as long as they are few
	digits     int             // numbers that are dates, such as 20260131
	digital    dateForm        // of those
	span       dateSpan        // of the dates
}

// dateForm is a form of dates that all values so far have.
type dateForm struct {
	form    string
	feature Feature
}

func newProfile(name string, forms []dateForm) *Profile {
	return &Profile{Name: name, values: make(map[string]int), odd: make(map[string]bool), undated: make(map[string]bool), counts: true, forms: forms}
}

// allDateForms returns those that are tried.
func allDateForms() []dateForm {
	var all []dateForm
	for _, form := range dateForms() {
		if layout, err := DateLayout(form); err == nil {
			all = append(all, dateForm{form, Feature{Kind: KindDate, Layout: layout}})
		}
	}
	return all
}

// add counts a field.
func (p *Profile) add(field string) {
	p.Rows++
	if table.IsMissing(field) {
		p.Missing++
		p.counts = false
		return
	}
	if p.Example == "" {
		p.Example = clipPlain(field)
	}
	p.distinct(field)
	if !table.IsNumber(field) {
		p.words++
		p.blanks += strings.Count(field, " ")
		p.counts = false
		p.dates(field)
		p.unitOf(field)
		if table.HasDecimalComma(field) {
			p.foreign++
		}
		return
	}
	p.numbers++
	if len(field) > 1 && field[0] == '0' && field[1] >= '0' && field[1] <= '9' {
		p.codes++
	}
	n, err := strconv.ParseFloat(field, 64)
	p.moments.add(n)
	whole := err == nil && n == float64(int64(n))
	if whole {
		p.integers++
	}
	if whole {
		p.digitDate(field, n)
	}
	first := p.Rows == 1
	if first {
		p.next, p.start = int64(n), int64(n)
	}
	p.counts = p.counts && whole && int64(n) == p.next
	p.next++
}

// digitDate counts a whole number that is a date: such as 20260131, or where the column is
// called like a time, the seconds or milliseconds since 1970.
func (p *Profile) digitDate(field string, n float64) {
	form, ok := digitForm(field)
	if !ok && p.namesTime() {
		form, ok = unixForm(n)
	}
	if ok && (p.digits == 0 || form.form == p.digital.form) {
		p.digital = form
		p.digits++
		p.span.add(&form.feature, field)
	}
}

// namesTime reports whether the name is that of a moment.
func (p *Profile) namesTime() bool {
	name := strings.ToLower(p.Name)
	return slices.Contains([]string{"ts", "t", "at", "when"}, name) || strings.HasSuffix(name, "_at") || strings.HasSuffix(name, "_ts") ||
		slices.ContainsFunc([]string{"time", "date", "epoch", "unix"}, func(word string) bool { return strings.Contains(name, word) })
}

// longestValue bounds what is kept of a value.
const longestValue = 256

// shortened returns how a value is kept: a longer one, as documents are, by its beginning and
// its end, and a hash that tells it apart from others.
func shortened(field string) string {
	const begin, end = 128, 64
	if len(field) <= longestValue {
		return field
	}
	sum := sha256.Sum256([]byte(field))
	hash := strconv.FormatUint(binary.LittleEndian.Uint64(sum[:]), 10)
	return strings.ToValidUTF8(field[:begin]+" "+hash+" "+field[len(field)-end:], "")
}

func (p *Profile) distinct(field string) {
	if p.values == nil {
		return
	}
	field = shortened(field)
	if _, seen := p.values[field]; !seen {
		if p.Distinct == maxDistinct {
			p.Many, p.values = true, nil
			return
		}
		p.Distinct++
		field = strings.Clone(field) // not the row it is part of
	}
	p.values[field]++
}

// fewOdd is how many different words may be among numbers, as marks of missing
// values.
const fewOdd = 10

// unitOf counts a field that is a number with a unit or a bound, or notes it as an odd
// one.
func (p *Profile) unitOf(field string) {
	_, isMagnitude := fromMagnitude(field)
	if isMagnitude {
		p.magnitudes++
	}
	if _, unit, ok := splitUnit(field); ok && (p.unit == "" || sameUnit(unit, p.unit)) {
		if p.unit == "" {
			p.unit = strings.Clone(unit)
		}
		p.units++
		return
	}
	if _, ok := bound(field); ok {
		p.bounds++
		return
	}
	switch {
	case isMagnitude:
		p.spare++
	case len(field) > longestUnit+64:
		p.texts = true
	case len(p.odd) <= fewOdd:
		p.odd[strings.Clone(field)] = true
	}
}

// naValues returns the words of a column that has numbers but for these: they
// mean missing values. A few distinct numbers are names of something.
func (p *Profile) naValues() []string {
	const few, fewest = 20, 0.5
	if p.isMagnitudes() {
		return p.oddWords()
	}
	if code := p.sentinel(); code != "" {
		return []string{code}
	}
	n := p.numbers + p.units + p.bounds
	if !p.hasFewOdd() || !p.isBounded() || p.spare > 0 || float64(n) < fewest*float64(p.present()) || p.Distinct-len(p.odd) <= few && !p.Many {
		return nil
	}
	return p.oddWords()
}

// dates drops the forms that a field does not have. A few words that have none of
// all forms may mean no date.
func (p *Profile) dates(field string) {
	if len(p.forms) == 0 || p.undated[field] {
		return
	}
	if left := formsOf(p.forms, field); len(left) > 0 {
		p.forms = left
		p.dated++
		p.span.add(&left[0].feature, field)
		return
	}
	if len(p.undated) == fewOdd || len(field) > longestUnit+64 || p.dated > 0 && len(formsOf(allDateForms(), field)) > 0 {
		p.forms = nil
		return
	}
	p.undated[strings.Clone(field)] = true
}

// formsOf returns those forms that a field has. The slice given is shared.
func formsOf(forms []dateForm, field string) (left []dateForm) {
	if !strings.ContainsAny(field, "0123456789") {
		return nil
	}
	read := (*Feature).time
	if isPlainDate(field) {
		read = (*Feature).plainTime // there are hundreds of forms
	}
	for _, f := range forms {
		if _, err := read(&f.feature, field); err == nil {
			left = append(left, f)
		}
	}
	return left
}

// isDated reports whether the values are dates, but for a few words that stand for
// none.
func (p *Profile) isDated() bool {
	n := p.present()
	return p.words == n && len(p.forms) > 0 && 2*p.dated >= n && p.dated > 0
}

// isDigitDates reports whether all values are numbers that are dates of one form.
func (p *Profile) isDigitDates() bool { return p.digits > 0 && p.digits == p.present() }

// hasDigitForm reports whether numbers that are dates are so for sure: a few such as 200912 may be
// any numbers.
func (p *Profile) hasDigitForm() bool {
	const fewest = 5
	return len(p.Example) > len("200912") || p.Distinct >= fewest || p.namesTime()
}

// hasOneUnit reports whether the values are lengths of time in one unit, as in 90 min, which are
// better known as numbers of it.
func (p *Profile) hasOneUnit() bool { return p.units == p.present() && p.dateForm().form == Duration }

// dateForm returns how dates are written. It is for columns of dates alone.
func (p *Profile) dateForm() dateForm {
	if !p.isDigitDates() {
		return p.forms[0]
	}
	return p.digital
}

// present returns the number of values.
func (p *Profile) present() int { return p.Rows - p.Missing }

// isProse reports whether the fields are texts of several words, more than a name has.
func (p *Profile) isProse() bool {
	const most = 4 // words of a name, such as Mr. Owen Harris Braund
	return p.blanks >= most*p.present()
}

// isText reports whether the values are texts, with words that other texts may have too, or
// lists of words.
func (p *Profile) isText() bool {
	if p.isTags() {
		return true
	}
	const many = 1000 // and so hardly names of something
	mostlyNumbers := 2*p.numbers > p.present()
	return p.kind() == KindCategory && !mostlyNumbers && (p.unique() || p.tooManyWords() || p.Distinct > many) && p.isProse()
}

// unique reports whether no value is there twice.
func (p *Profile) unique() bool { return !p.Many && p.Distinct == p.present() && p.Distinct > 1 }

// kind returns what the column holds.
func (p *Profile) kind() Kind {
	switch n := p.present(); {
	case p.numbers == n && p.isCode():
		return KindCategory
	case p.isDigitDates() && p.hasDigitForm(), p.isDated() && !p.hasOneUnit():
		return KindDate
	case p.numbers == n, p.isMagnitudes():
		return KindNumber
	case p.numbers+p.units+p.bounds == n && (p.units == 0 || p.isMeasured()) && p.isBounded(), p.naValues() != nil:
		return KindNumber
	}
	return KindCategory
}

// isMeasured reports whether the numbers have a unit. Few different ones are words,
// as in "2 doors", unless the unit is known, or a person says that they are numbers.
func (p *Profile) isMeasured() bool {
	const few = 20
	return p.units > 0 && (p.measured || p.Distinct > few || p.Many || slices.Contains(knownUnits, p.unit))
}

// isBounded reports whether the bounds, if there are any, are among numbers; those
// that are not are names of ranges.
func (p *Profile) isBounded() bool { return p.bounds == 0 || 2*(p.numbers+p.units) >= p.present() }

// isClasses reports whether the values are classes: words, or whole numbers of
// which there are few and each several times; named says that the column is
// called like one that has classes.
func (p *Profile) isClasses(named bool) bool {
	if p.kind() == KindCategory {
		return true
	}
	if p.kind() != KindNumber || p.integers != p.numbers || p.Many {
		return false
	}
	if named && p.Distinct <= maxClasses && p.isNumbered() && 2*p.Distinct <= p.present() {
		return true
	}
	const few = 20
	return p.Distinct <= few && (5*p.Distinct <= p.present() || p.Distinct <= 2 && !p.unique()) && !p.tapers()
}

// tapers reports whether whole numbers look like counts rather than classes: there are more than
// ten, and the greatest occurs much more rarely than most.
func (p *Profile) tapers() bool {
	const usual, rare = 10, 5
	if p.Distinct <= usual {
		return false
	}
	for field, n := range p.values {
		if v, err := strconv.ParseFloat(field, 64); err == nil && v == p.moments.Max {
			return n*rare*p.Distinct < p.present()
		}
	}
	return false
}

// isNumbered reports whether the values are the numbers 0 to Distinct-1, written
// as integers.
func (p *Profile) isNumbered() bool {
	for i := range p.Distinct {
		if p.values[strconv.Itoa(i)] == 0 {
			return false
		}
	}
	return p.Distinct > 0
}

// countsRows reports whether the numbers are those of the rows, from 0, 1 or, as those of customers,
// from a thousand or more. Such a number may be a year too.
func (p *Profile) countsRows() bool {
	const fewest, thousand, firstYear, lastYear = 20, 1000, 1500, 2200
	switch {
	case !p.counts || p.isTimeName() || p.isDigitDates():
		return false
	case p.start == 0 || p.start == 1:
		return true
	}
	return p.Rows >= fewest && p.start >= thousand && (p.start < firstYear || p.next > lastYear)
}

// looksLikeID reports whether the name is that of a number which identifies a
// row.
func (p *Profile) looksLikeID() bool {
	name := strings.ToLower(p.Name)
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" _-.:#", r) })
	if n := len(words); n > 1 && slices.Contains([]string{"id", "no", "nr", "number", "nummer", "numero", "número", "key"}, words[n-1]) {
		return true
	}
	return slices.Contains([]string{"id", "index", "idx", "rowid", "row", "rownames", "rownum", "uuid", "obs", "no", "nr", "#"}, strings.TrimRight(name, ".:")) ||
		strings.HasSuffix(p.Name, "Id") || strings.HasSuffix(p.Name, "ID")
}

// isTimeName reports whether the name is that of a time, which may count from 1.
func (p *Profile) isTimeName() bool {
	return slices.Contains([]string{"time", "t", "year", "quarter", "month", "week", "day", "hour", "minute", "second"}, strings.ToLower(p.Name))
}

// clipPlain shortens a value for a table of people.
func clipPlain(field string) string {
	const longest = 24
	field = strings.Join(strings.Fields(field), " ")
	if runes := []rune(field); len(runes) > longest {
		return string(runes[:longest-3]) + "..."
	}
	return field
}
