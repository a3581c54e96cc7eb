//go:build !amd64 || noasm

package vec

func chooseWide(_ []uint32, _ []bool, _, _ []uint32) int                  { return 0 }
func chooseOrWide(_ []uint32, _ []bool, _ bool, _ []uint32, _ uint32) int { return 0 }

func lessWide(_ []bool, _, _ []float32) int                    { return 0 }
func lessScalarWide(_ []bool, _ []float32, _ float32) int      { return 0 }
func scalarLessWide(_ []bool, _ float32, _ []float32) int      { return 0 }
func lessEqualWide(_ []bool, _, _ []float32) int               { return 0 }
func lessEqualScalarWide(_ []bool, _ []float32, _ float32) int { return 0 }
func scalarLessEqualWide(_ []bool, _ float32, _ []float32) int { return 0 }

func equalWide([]bool, []float32, []float32, bool) int     { return 0 }
func equalScalarWide([]bool, []float32, float32, bool) int { return 0 }
