package table

import (
	"bytes"
	"encoding/binary"
	"strings"
)

const otherImage = "convert it to PNG or JPEG, or give the folder that has a folder of images for each class"

// otherImages are what images of other kinds begin with, and have at some place after it.
var otherImages = []struct {
	begin string
	at    int
	magic string
	what  string
}{
	{"RIFF", 8, "WEBP", "is a WebP image"}, {"\x00\x00\x00", 4, "ftypheic", "is a HEIC image"},
	{"\x00\x00\x00", 4, "ftypmif1", "is a HEIF image"}, {"\x00\x00\x00", 4, "ftypavif", "is an AVIF image"},
}

// What files begin with that are not tables of text.
var otherFiles = []struct{ magic, what, hint string }{
	{parquetMagic, "is a Parquet file", `set data.format = "parquet"`},
	{"\xd0\xcf\x11\xe0", "is a document of an old spreadsheet", "save the sheet as CSV"},
	{"SQLite format 3", "is a database of SQLite", "export the table: sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > table.csv"},
	{"\x89HDF", "is an HDF5 file", "store the table as CSV or Parquet"},
	{"\x93NUMPY", "is an array of numpy", `set data.format = "npy", or give trainerd init the file`},
	{"\x80\x03", "is a pickle of Python", "store the table as CSV or Parquet, as with DataFrame.to_parquet"},
	{"\x80\x04", "is a pickle of Python", "store the table as CSV or Parquet, as with DataFrame.to_parquet"},
	{"\x80\x05", "is a pickle of Python", "store the table as CSV or Parquet, as with DataFrame.to_parquet"},
	{"ARROW1", "is an Arrow file, also called Feather", "store the table as Parquet, as with DataFrame.to_parquet"},
	{"ORC", "is an ORC file", "store the table as CSV or Parquet"},
	{"Obj\x01", "is an Avro file", "store the table as CSV or Parquet"},
	{"RDX", "is a file of R", "store the table as CSV, with write.csv"},
	{"X\n\x00\x00", "is a file of R", "store the table as CSV, with write.csv"},
	{"MATLAB 5.0 MAT-file", "is a file of MATLAB", "store the table as CSV, with writetable"},
	{"$FL2", "is a file of SPSS", "store the table as CSV"},
	{"<stata_dta>", "is a file of Stata", "store the table as CSV"},
	{"\x89PNG", "is an image", "give the folder that has a folder of images for each class"},
	{"\xff\xd8\xff", "is an image", "give the folder that has a folder of images for each class"},
	{"II*\x00", "is a TIFF image", otherImage},
	{"MM\x00*", "is a TIFF image", otherImage},
	{"%PDF", "is a PDF", "export the table as CSV"},
	{"\xfd7zXZ\x00", "is compressed with xz", "decompress it: xz -d FILE, or compress it with gzip or zstd"},
	{"]\x00\x00", "is compressed with lzma", "decompress it: xz -d FILE, or compress it with gzip or zstd"},
	{"\x1f\x9d", "is compressed with compress", "decompress it: gzip -d FILE"},
	{"\x04\x22\x4d\x18", "is compressed with lz4", "decompress it: lz4 -d FILE, or compress it with gzip or zstd"},
	{"7z\xbc\xaf\x27\x1c", "is a 7z archive", "unpack it"},
	{"Rar!\x1a\x07", "is a RAR archive", "unpack it"},
	{"\xff\xfe\x00\x00", "is UTF-32", "save it as UTF-8"},
	{"\x00\x00\xfe\xff", "is UTF-32", "save it as UTF-8"},
}

// notText returns an error if a file that begins with head is of another kind than text.
func notText(head []byte) error {
	what, hint := "", ""
	for _, f := range otherFiles {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			what, hint = f.what, f.hint
			break
		}
	}
	for _, f := range otherImages {
		if bytes.HasPrefix(head, []byte(f.begin)) && len(head) > f.at && bytes.HasPrefix(head[f.at:], []byte(f.magic)) {
			what, hint = f.what, otherImage
		}
	}
	switch {
	case what != "":
	case bytes.HasPrefix(head, []byte(zipMagic)):
		what, hint = describeZip(head)
	case isTar(head):
		what, hint = "is a tar archive", "unpack it"
	default:
		return nil
	}
	return &Error{Reason: what + ", not a table of text", Hint: hint}
}

// describeZip says what an archive is, by the name of its first file.
func describeZip(head []byte) (what, hint string) {
	name := ""
	if len(head) > zipHeaderSize {
		size := int(binary.LittleEndian.Uint16(head[zipNameSizeAt:]))
		name = string(head[zipHeaderSize:min(zipHeaderSize+size, len(head))])
	}
	switch {
	case strings.HasSuffix(name, ".npy"):
		return "holds arrays of numpy", `set data.format = "npy", or give trainerd init the file`
	case strings.HasSuffix(name, ".pkl"), strings.HasSuffix(name, "/.format_version"):
		return "is a file of PyTorch", "store the table as CSV or Parquet"
	}
	return "is a zip archive, as those of spreadsheets are", "save the sheet as CSV, or unpack the archive"
}

// isTar reports whether a file begins like an archive of tar.
func isTar(head []byte) bool {
	const at = 257
	return len(head) > at && bytes.HasPrefix(head[at:], []byte("ustar"))
}
