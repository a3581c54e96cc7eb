package logdir

// BestDir is the folder of a logdir with the checkpoints that evaluations have found to be the
// best, and BestFile the file in it that says how good they are.
const (
	BestDir  = "best"
	BestFile = "best.json"
)
