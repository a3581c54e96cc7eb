package elem

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Convert is the kernel of a function of one element that changes its type.
func Convert[S, D exec.Element](f func(S) D) exec.Kernel {
	dt := exec.DTypeOf[D]()
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := exec.Elems[D](c.OutLike(0, dt, x))
		for i, v := range exec.Elems[S](x) {
			d[i] = f(v)
		}
		return nil
	}
}

// Unary is the kernel of a function of one element.
func Unary[T exec.Element](f func(T) T) exec.Kernel { return Convert(f) }

// ConvertBool is Convert of booleans to 1 and 0.
func ConvertBool[D exec.Number](c *exec.KernelContext) error {
	x := c.In(0)
	d := exec.Elems[D](c.OutLike(0, exec.DTypeOf[D](), x))
	for i, v := range x.Data[:len(d)] { // a byte for each
		d[i] = D(v)
	}
	return nil
}

// OneIf returns 1 or 0.
func OneIf[T exec.Number](v bool) T {
	if v {
		return 1
	}
	return 0
}
