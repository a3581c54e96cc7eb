package found

func steps(all []Checkpoint) (steps []int64) {
	for _, c := range all {
		steps = append(steps, c.Step)
	}
	return steps
}
