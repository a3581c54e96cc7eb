//go:build !amd64 || noasm

package vec

func turnHueWide(_, _, _ []float32, _ float32) int  { return 0 }
func saturateWide(_, _, _ []float32, _ float32) int { return 0 }
