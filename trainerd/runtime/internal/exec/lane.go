package exec

// lane is what steps that run at the same time do not share.
type lane struct {
	call    KernelContext
	scratch [scratchCount]buffer
	ints    [8][]int
	inFrame []any // by InFrame
}

func (l *lane) init() {
	for k := range l.ints {
		l.ints[k] = make([]int, 0, 2*MaxRank) // enough for any shape
	}
}

// maxLanes bounds the steps that run at the same time.
const maxLanes = 8

// laneOf returns lane i of those of [frame.makeLanes].
func (f *frame) laneOf(i int) *lane {
	if i == 0 {
		return &f.lane
	}
	return f.more[i-1]
}

// makeLanes makes n lanes at least.
func (f *frame) makeLanes(n int) {
	for len(f.more) < n-1 {
		l := &lane{}
		l.init()
		f.more = append(f.more, l)
	}
}
