package integrity

import (
	"bufio"
	"bytes"
	"io"
)

// A model of LightGBM is a text:
//
//	tree
//	version=v4
//	...
//	end of trees
//	...
//	parameters:
//	...
//	end of parameters
//
// Old versions write no parameters.
const boosted = "tree\nversion="

// checkBoosted checks that a LightGBM model has the ends of all sections that it begins.
func checkBoosted(r io.Reader) error {
	lines, open := bufio.NewReader(r), []byte("end of trees")
	for {
		line, isPart, err := lines.ReadLine()
		switch {
		case err == io.EOF && open != nil:
			return errCut
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case isPart:
		case bytes.Equal(line, open):
			open = nil
		case open == nil && string(line) == "parameters:":
			open = []byte("end of parameters")
		}
	}
}
