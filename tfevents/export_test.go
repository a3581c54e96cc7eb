package tfevents

// What the tests of this package share with those that import packages built
// on it.
const ProjectorConfigName = projectorConfigName

var (
	NewTestWriter = newTestWriter
	OnlyFile      = onlyFile
	CheckFile     = checkFile
	ShapeProto    = shapeProto
	At            = at
	Nan           = nan
	WriterNumber  = &writerNumber
)
