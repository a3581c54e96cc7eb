package model

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// dateParts returns the parts of the dates of a column: for each a row with a one among
// zeros, or with zeros alone if the date is missing.
func (m *maker) dateParts(column rawColumn) (parts []graph.Output) {
	b := m.b
	if len(column.Parts) == 0 {
		return nil
	}
	b.Scope("features/"+column.name(), func() {
		c := newCalendar(b, b.Reshape("days", b.Columns("column", m.x, column.at), graph.MakeShape(-1)))
		for _, part := range column.Parts {
			b.Scope(string(part), func() { parts = append(parts, c.oneHot(part)) })
		}
	})
	return parts
}

// calendar divides dates into parts, as [dataset.DatePart.Of] does. It calculates with
// float64, which holds whole numbers of days, and their quotients rounded down, exactly.
type calendar struct {
	b         *graph.Builder
	time, day graph.Output // days since 1970, and the same without the time of day
	missing   graph.Output
}

func newCalendar(b *graph.Builder, days graph.Output) *calendar {
	c := &calendar{b: b, missing: b.IsNan("missing", days)}
	exact := b.Cast("exact", days, tfpb.DataType_DT_DOUBLE)
	c.time = b.Maximum("latest", c.times(exact, 1+dataset.FloatError), c.times(exact, 1-dataset.FloatError))
	c.day = b.Floor("day", c.time)
	return c
}

// oneHot returns a row of zeros, with a one at the part that each date has.
func (c *calendar) oneHot(part dataset.DatePart) graph.Output {
	var at graph.Output
	switch part {
	case dataset.Weekday:
		at = c.mod(c.plus(c.day, 3), 7) // the first of January 1970 was a Thursday
	case dataset.Hour:
		at = c.b.Floor("hour", c.times(c.b.Sub("time_of_day", c.time, c.day), 24))
	default:
		at = c.dayAndMonth(part)
	}
	at = c.b.Where("known", c.missing, c.number(-1), at)
	return c.b.OneHot("one_hot", c.b.Cast("index", at, tfpb.DataType_DT_INT64), int32(part.Size()))
}

// dayAndMonth returns the month, or the day of the month. Years are counted from March
// on, so that the day of a leap year is the last one, and the lengths of five months
// always are 153 days. They repeat after 400 years; a century is short of a day in all but
// the last of these, and so is a year in all but the last of four.
func (c *calendar) dayAndMonth(part dataset.DatePart) graph.Output {
	const era, century, fourYears, year = 146097, 36524, 1461, 365
	const sinceMarchOfYear0 = 719468 // to 1970
	d := c.mod(c.plus(c.day, sinceMarchOfYear0), era)
	d = c.less(d, c.times(c.atMost(c.div(d, century), 3), century))
	d = c.mod(d, fourYears)
	d = c.less(d, c.times(c.atMost(c.div(d, year), 3), year))
	month := c.div(c.plus(c.times(d, 5), 2), 153)
	if part == dataset.DayOfMonth {
		return c.less(d, c.div(c.plus(c.times(month, 153), 2), 5))
	}
	return c.mod(c.plus(month, 2), 12)
}

func (c *calendar) number(v float64) graph.Output { return c.b.Const("Const", literal.Double(v)) }

func (c *calendar) times(x graph.Output, v float64) graph.Output { return c.b.Mul("", x, c.number(v)) }
func (c *calendar) plus(x graph.Output, v float64) graph.Output {
	return c.b.AddV2("", x, c.number(v))
}
func (c *calendar) less(x, y graph.Output) graph.Output { return c.b.Sub("", x, y) }
func (c *calendar) atMost(x graph.Output, v float64) graph.Output {
	return c.b.Minimum("", x, c.number(v))
}

// div returns x / v, rounded down, and mod the rest.
func (c *calendar) div(x graph.Output, v float64) graph.Output {
	return c.b.Floor("", c.b.RealDiv("", x, c.number(v)))
}

func (c *calendar) mod(x graph.Output, v float64) graph.Output {
	return c.less(x, c.times(c.div(x, v), v))
}
