package tfevents

// What the tests of this package share with those that import packages built
// on it.
var (
	NewTestWriter = newTestWriter
	OnlyFile      = onlyFile
	CheckFile     = checkFile
	At            = at
	WriterNumber  = &writerNumber
)
