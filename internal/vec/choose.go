package vec

// Choose sets d to x where cond is set, else to y.
func Choose(d []uint32, cond []bool, x, y []uint32) {
	cond, x, y = cond[:len(d)], x[:len(d)], y[:len(d)]
	for i := chooseWide(d, cond, x, y); i < len(d); i++ {
		v := y[i]
		if cond[i] {
			v = x[i]
		}
		d[i] = v
	}
}

// ChooseOr sets d to x where cond is want, else to v.
func ChooseOr(d []uint32, cond []bool, want bool, x []uint32, v uint32) {
	cond, x = cond[:len(d)], x[:len(d)]
	for i := chooseOrWide(d, cond, want, x, v); i < len(d); i++ {
		chosen := v
		if cond[i] == want {
			chosen = x[i]
		}
		d[i] = chosen
	}
}

// Less sets d to whether x < y.
func Less(d []bool, x, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	for i := lessWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] < y[i]
	}
}

// LessScalar sets d to whether x < s.
func LessScalar(d []bool, x []float32, s float32) {
	x = x[:len(d)]
	for i := lessScalarWide(d, x, s); i < len(d); i++ {
		d[i] = x[i] < s
	}
}

// ScalarLess sets d to whether s < x.
func ScalarLess(d []bool, s float32, x []float32) {
	x = x[:len(d)]
	for i := scalarLessWide(d, s, x); i < len(d); i++ {
		d[i] = s < x[i]
	}
}

// LessEqual sets d to whether x <= y.
func LessEqual(d []bool, x, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	for i := lessEqualWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] <= y[i]
	}
}

// LessEqualScalar sets d to whether x <= s.
func LessEqualScalar(d []bool, x []float32, s float32) {
	x = x[:len(d)]
	for i := lessEqualScalarWide(d, x, s); i < len(d); i++ {
		d[i] = x[i] <= s
	}
}

// ScalarLessEqual sets d to whether s <= x.
func ScalarLessEqual(d []bool, s float32, x []float32) {
	x = x[:len(d)]
	for i := scalarLessEqualWide(d, s, x); i < len(d); i++ {
		d[i] = s <= x[i]
	}
}

// Equal sets d to whether x == y, or with unequal to whether they differ.
func Equal(d []bool, x, y []float32, unequal bool) {
	x, y = x[:len(d)], y[:len(d)]
	for i := equalWide(d, x, y, unequal); i < len(d); i++ {
		d[i] = (x[i] == y[i]) != unequal
	}
}

// EqualScalar is Equal for a number.
func EqualScalar(d []bool, x []float32, s float32, unequal bool) {
	x = x[:len(d)]
	for i := equalScalarWide(d, x, s, unequal); i < len(d); i++ {
		d[i] = (x[i] == s) != unequal
	}
}
