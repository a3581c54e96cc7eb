// Package table reads tables as people keep them: text with separated columns
// (CSV in all its dialects), JSON objects, and Parquet. A table is rows of
// fields, and a field is text: package dataset decides what it means.
//
//	t, err := table.Open("cars.csv", table.Options{})
//	for {
//		row, err := t.Next() // io.EOF at the end
//	}
//
// With [Options].Sniff, [Open] detects what the other options leave open: the compression (gzip, bzip2,
// zstd, a zip archive of one file), the encoding (UTF-8, UTF-16, Windows-1252), the separator, the quotes,
// comments, lines before the table, the header, and the decimal comma. Without it, Options is taken
// literally.
//
// # Text
//
// A record is a line, or several if a quoted field has line ends in it:
//
//	record = field { separator field } ( LF | CR LF | CR )
//	field  = { any } | quote { any but quote | quote quote } quote
//
// Empty lines are left out, and blanks around a field are not part of it. A
// quote within a field that does not begin with one is text. With a blank as separator, any run of blanks and
// tabs separates, and those at the ends of a line are ignored. Numbers may have currency signs, thousands
// separators, and a minus sign as accountants and typesetters write it. Duplicate column names are numbered
// as in pandas, "x" and "x.1", and a column without a name is "Unnamed: N". If the header is one field
// shorter than the rows, it lacks the name of the first column, as R writes it, or, if nothing follows the
// last separator of the rows, that of an empty last column.
//
// # JSON
//
// Objects, one after another (JSON lines) or in one array. The columns are the keys in the order in
// which they first appear; those of nested objects are joined with dots. Missing keys and null are
// empty fields. A list of numbers that has the same length in each of the first rows becomes a
// column for each number: v.0, v.1 and so on. Other lists are fields with their JSON.
//
// # Parquet
//
// The names of columns in groups are joined with dots, and lists are as in JSON. Other repeated
// values, such as lists in lists and maps, are left out. Timestamps and dates become RFC 3339 text.
//
// A Table is for one goroutine at a time. The rules are those of RFC 4180
// unless a dialect contradicts them, and otherwise those of pandas
// (https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html).
package table
