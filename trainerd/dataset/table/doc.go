// Package table reads tables as people keep them: text with separated columns
// (CSV in all its dialects), JSON objects, and Parquet. A table is rows of
// fields, and a field is text: what it means is decided by package
// dataset.
//
//	t, err := table.Open("cars.csv", table.Options{})
//	for {
//		row, err := t.Next() // io.EOF at the end
//	}
//
// [Open] finds out what [Options] leaves open: the compression (gzip, bzip2,
// zstd, a zip archive of one file), the encoding (UTF-8, UTF-16, Windows-1252), the separator, the quotes,
// comments, lines before the table, the header, and the decimal comma. [Sniff]
// only tells. An [Options] without Sniff is taken literally.
//
// # Text
//
// A record is a line, or several if a quoted field has line ends in it:
//
//	record = field { separator field } ( LF | CR LF | CR )
//	field  = { any } | quote { any but quote | quote quote } quote
//
// Empty lines are left out, and blanks around a field are not part of it. A
// quote within a field that does not begin with one is text. With a blank as
// separator, any run of blanks and tabs separates, and those at the ends of a
// line do not count. Numbers may have signs of currencies, marks between their
// thousands, and a minus sign as accountants and typesetters write it. Names of columns that occur twice are numbered as pandas
// does it, "x" and "x.1", and a column without a name is "Unnamed: N". A header
// that is a field shorter than the rows lacks the name of the first column, as
// R writes it, or, where nothing follows the last separator of the rows, that of
// an empty last one.
//
// # JSON
//
// Objects, one after the other (JSON lines) or as one array. The columns are
// the keys in the order in which they first appear; those of objects within
// are joined by dots. A key that an object lacks, and null, are empty fields.
//
// # Parquet
//
// Columns that repeat are left out; those of groups are joined by dots.
// Timestamps and dates become RFC 3339 text.
//
// A Table is for one goroutine at a time. The rules of RFC 4180 are followed
// where a dialect does not contradict them; those of pandas otherwise
// (https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html).
package table
