package gemm

// Many32s and Many64s are Float32s and Float64s for a product that is one of many. Small ones
// are computed where they lie: laying their factors out for the processor would take several
// times as long.
var (
	Many32s = many(Float32s)
	Many64s = many(Float64s)
)

func many[T float32 | float64](laidOut Func[T]) Func[T] {
	return func(ta, tb bool, m, n, k int, a, b []T, beta T, c []T) {
		if m*n*k > smallProduct {
			laidOut(ta, tb, m, n, k, a, b, beta, c)
			return
		}
		small(ta, tb, m, n, k, a, b, beta, c)
	}
}

// smallProduct is how many multiplications take as long as laying factors out.
const smallProduct = 256

func small[T float32 | float64](ta, tb bool, m, n, k int, a, b []T, beta T, c []T) {
	if beta == 0 {
		clear(c)
	}
	if k == 0 {
		return
	}
	if n == 1 {
		timesVector(ta, m, k, a, b, c)
		return
	}
	rowStep, step := k, 1 // between the rows of the first factor, and within one
	if ta {
		rowStep, step = 1, m
	}
	for i := range m {
		row := c[i*n : (i+1)*n]
		if tb && k > 1 {
			for j := range row {
				row[j] += strided(a[i*rowStep:], step, b[j*k:(j+1)*k])
			}
			continue
		}
		for l := range k {
			addScaled(row, b[l*n:(l+1)*n], a[i*rowStep+l*step])
		}
	}
}

// timesVector adds the product of a matrix and a vector to c.
func timesVector[T float32 | float64](ta bool, m, k int, a, x, c []T) {
	if ta {
		for l := range k {
			addScaled(c[:m], a[l*m:(l+1)*m], x[l])
		}
		return
	}
	i := 0
	for ; i+4 <= m; i += 4 { // the processor adds to four sums at a time
		r0, r1, r2, r3 := a[i*k:(i+1)*k], a[(i+1)*k:(i+2)*k], a[(i+2)*k:(i+3)*k], a[(i+3)*k:(i+4)*k]
		var s0, s1, s2, s3 T
		for l, v := range x[:k] {
			s0 += r0[l] * v
			s1 += r1[l] * v
			s2 += r2[l] * v
			s3 += r3[l] * v
		}
		c[i] += s0
		c[i+1] += s1
		c[i+2] += s2
		c[i+3] += s3
	}
	for ; i < m; i++ {
		c[i] += strided(a[i*k:], 1, x[:k])
	}
}

// strided is the product of two vectors; the elements of the first are step apart.
func strided[T float32 | float64](x []T, step int, y []T) (sum T) {
	at := 0
	for _, v := range y {
		sum += x[at] * v
		at += step
	}
	return sum
}

func addScaled[T float32 | float64](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] += s * x[i]
	}
}
