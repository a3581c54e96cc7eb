package table

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn is a column of a file.
type parquetColumn struct {
	at   int // its number in the table; -1 if it has none
	text func(parquet.Value) string
	list bool // a row has any number of values
	word bool // they are texts, even those that look like numbers
	null int  // definition level of a null in a list; -1 if it can have none

	values []byte // of the list of the row that is read, as JSON
}

// listNames are what writers call the group of a list and the values in it.
var listNames = []string{"list.element", "list.item", "list.array", "bag.array_element", "array"}

// setList makes a column one of lists, and returns its path; nil if its values are part of something else that is
// repeated, as the keys of maps are.
func (c *parquetColumn) setList(path []string, leaf parquet.LeafColumn) []string {
	if leaf.MaxRepetitionLevel > 1 {
		return nil
	}
	if !leaf.Node.Repeated() {
		if path = outsideList(path); path == nil {
			return nil
		}
	}
	logical := leaf.Node.Type().LogicalType()
	c.word = logical != nil && isText(logical.Value)
	c.list, c.null = true, -1
	if leaf.Node.Optional() {
		c.null = leaf.MaxDefinitionLevel - 1
	}
	return path
}

func isText(logical format.LogicalTypeValue) bool {
	switch logical.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return true
	}
	return false
}

// outsideList returns the path of a list, given that of its values.
func outsideList(path []string) []string {
	for _, name := range listNames {
		inner := strings.Split(name, ".")
		if n := len(path) - len(inner); n > 0 && slices.Equal(path[n:], inner) {
			return path[:n]
		}
	}
	return nil
}

// put stores a value in the fields of its row. Those of a list come one after the other: see closeList.
func (c *parquetColumn) put(v parquet.Value, fields []string) {
	switch {
	case !c.list && !v.IsNull():
		fields[c.at] = c.text(v)
	case c.list && !v.IsNull():
		c.add(c.text(v))
	case c.list && v.DefinitionLevel() == c.null:
		c.add("")
	}
}

// add appends a value to the list of the row, as JSON.
func (c *parquetColumn) add(text string) {
	c.values = append(c.values, ',')
	switch {
	case text == "":
		c.values = append(c.values, "null"...)
	case !c.word && IsNumber(text):
		c.values = append(c.values, text...)
	default:
		c.values = appendJSON(c.values, text)
	}
}

// closeList stores the list of the row in its fields: nothing if it has no values.
func (c *parquetColumn) closeList(fields []string) {
	if len(c.values) > 0 {
		c.values[0] = '['
		fields[c.at] = string(append(c.values, ']'))
	}
	c.values = c.values[:0]
}
