//go:build !amd64 || noasm

package parallel

// pause lets some time pass.
func pause(n int) {
	for i := 0; i < n; i++ {
		idle(i)
	}
}

//go:noinline
func idle(int) {}
