//go:build !amd64 || noasm

package vec

func fromHalvesWide(_ []float32, _ []uint16) int    { return 0 }
func toHalvesWide(_ []uint16, _ []float32) int      { return 0 }
func roundHalvesWide(_, _ []float32) int            { return 0 }
func fromBfloat16sWide(_ []float32, _ []uint16) int { return 0 }
func toBfloat16sWide(_ []uint16, _ []float32) int   { return 0 }
func roundBfloat16sWide(_, _ []float32) int         { return 0 }
func fromBytesWide(_ []float32, _ []uint8) int      { return 0 }
func fromInt32sWide(_ []float32, _ []int32) int     { return 0 }
