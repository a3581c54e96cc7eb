// Package planted has one of each kind of mutant.
package planted

import "errors"

var errNegative = errors.New("negative")

// limit is not tested at 10, nor with negative numbers.
func limit(n int) (int, error) {
	if n < 0 {
		return 0, errNegative
	}
	if n > 10 {
		n = 10
	}
	return n, nil
}

// both is tested in full.
func both(a, b bool) bool { return a && b }

// area is tested in full.
func area(width, height int) int {
	if width*height == 0 {
		return 0
	}
	sum := 0
	for range height {
		sum += width
	}
	return sum
}

// spread is tested with a difference of 0 only.
func spread(a, b int) int { return a - b }

// counts is tested without a look at the result.
func counts(s []string) (n int) {
	for range s {
		n++
	}
	return n
}

// nested has mutants inside mutants, with operators next to each other.
func nested(a, b, c int) bool {
	return (a+b*c > 3 || a == b && !(b >= c)) && a-1 < b+1
}

// untested is not reached.
func untested(ok bool) bool { return !ok }
