// Package text has the kernels of the ops on strings: joining, splitting, regular
// expressions, formats, Unicode and hashes.
package text

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		hashOps,
		stringsOps,
		stringFormatOps,
		stringUnicodeOps,
		unicodeCodesOps,
		segmentJoinOps,
		base64Ops,
		ngramOps,
	}
}
