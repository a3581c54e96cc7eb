package table

import (
	"errors"
	"strings"
	"testing"
)

// TestTextsThatAreNoTables surveys texts of other kinds that could be read as CSV: each is
// named, with what to do. What only resembles them is a table.
func TestTextsThatAreNoTables(t *testing.T) {
	const links = "<link rel=\"a, b\" href=\"x\">\n<link rel=\"c, d\" href=\"y\">\n"
	for _, tt := range []struct{ name, text, want string }{
		{"web page", "\n\n<!DOCTYPE html>\n" + links, "is a web page"},
		{"old web page", "<HTML><head>\n" + links, "is a web page"},
		{"XML", "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<row a=\"1\" y=\"2\"/>\n<row a=\"2\" y=\"1\"/>\n", "is XML"},
		{"a table of HTML", "<table border=\"1\" class=\"dataframe\">\n<thead><tr><th>a, b</th></tr>\n", "is a table of HTML"},
		{"LaTeX", "\\begin{tabular}{ll}\na & b \\\\\n1 & 2 \\\\\n", "is LaTeX"},
		{"arrays of JSON", "[\n [1, \"x\"],\n [2, \"y\"]\n]\n", "is JSON whose rows are arrays"},
		{"ARFF", "% iris, of 1988\n%\n\n@RELATION iris\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE y {p,q}\n@DATA\n1,p\n2,q\n", "is ARFF"},
		{"Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "pointer of Git LFS"},
		{"LIBSVM", "+1 3:0.5 7:1\n-1 1:2e-3\n", "is LIBSVM"},
		{"LIBSVM of flags", "1 3:1 11:1 14:1\n-1 2:1\n", "is LIBSVM"},
		{"times of day", "5 10:30 11:45\n6 9:10 12:00\n", ""},
		{"times with a word", "5 10:30:01 a\n6 9:10:02 b\n", ""},
		{"comments only", "%\n% 1,2\n", ""},
		{"percentages", "%a,y\n1,0\n2,1\n3,0\n", ""},
		{"tags in a column", "a,y\n<html>,0\n<?xml,1\n<html>,0\n", ""},
	} {
		_, err := New(strings.NewReader(tt.text), Options{Sniff: true, Narrow: true})
		var e *Error
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (!errors.As(err, &e) || !strings.Contains(e.Reason, tt.want) || e.Hint == ""):
			t.Errorf("%s: %v, want %q and a hint", tt.name, err, tt.want)
		}
	}
}

func TestFilesOfOtherPrograms(t *testing.T) {
	for head, want := range map[string]string{
		"\x80\x04\x95abc":              "is a pickle of Python, not a table of text; store the table as CSV or Parquet",
		"ARROW1\x00\x00":               "is an Arrow file",
		"RIFF\x10\x00\x00\x00WEBPVP8 ": "is a WebP image",
		"\x00\x00\x00\x18ftypheic":     "is a HEIC image",
		"II*\x00\x08":                  "is a TIFF image",
		"RDX3\nX\n":                    "is a file of R, not a table of text; store the table as CSV, with write.csv",
		"X\n\x00\x00\x00\x03":          "is a file of R",
		"MATLAB 5.0 MAT-file, x\n":     "is a file of MATLAB",
		"$FL2@(#) SPSS":                "is a file of SPSS",
	} {
		_, err := New(strings.NewReader(head), Options{Sniff: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", head, err, want)
		}
	}
}
