package math

import (
	"math/bits"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops on the bits of integers.
var bitwiseOps = exec.OpTable{
	"BitwiseAnd":      {Types: exec.Indices, Build: buildBits(and[int32], and[int64])},
	"BitwiseOr":       {Types: exec.Indices, Build: buildBits(or[int32], or[int64])},
	"BitwiseXor":      {Types: exec.Indices, Build: buildBits(xor[int32], xor[int64])},
	"PopulationCount": {Types: bitTypes, Build: buildPopulation},
	"LeftShift":       {Types: bitTypes, Build: buildShift(shiftLeft[int32], shiftLeft[int64])},
	"RightShift":      {Types: bitTypes, Build: buildShift(shiftRight[int32], shiftRight[int64])},
}

// bitTypes are the types whose width an op must know.
var bitTypes = exec.Indices | exec.SetOf(exec.Int8, exec.Int16, exec.Uint8, exec.Uint16, exec.Uint32)

func and[T exec.Integer](x, y T) T { return x & y }

func or[T exec.Integer](x, y T) T { return x | y }

func xor[T exec.Integer](x, y T) T { return x ^ y }

func buildBits(i32 func(x, y int32) int32, i64 func(x, y int64) int64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByIndex(b.DType("T"), elem.Combine(elem.LoopsOf(i32)), elem.Combine(elem.LoopsOf(i64)))
	}
}

func buildPopulation(b *exec.OpConstruction) (exec.Kernel, error) {
	mask := ^uint64(0) >> (64 - width(b))
	return exec.WidenedIntegers("T", func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByIndex(b.DType("T"),
			elem.Convert(func(v int32) uint8 { return uint8(bits.OnesCount32(uint32(v))) }),
			elem.Convert(func(v int64) uint8 { return uint8(bits.OnesCount64(uint64(v) & mask)) }))
	})(b)
}

// width returns the bits of an element.
func width(b *exec.OpConstruction) int { return 8 * exec.ElemSize(b.DType("T")) }

func buildShift(i32 func(bits int) func(x, y int32) int32, i64 func(bits int) func(x, y int64) int64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		w := width(b)
		return exec.WidenedIntegers("T", buildBits(i32(w), i64(w)))(b)
	}
}

// A shift count outside the word is taken as the nearest one inside.
func shiftLeft[T exec.Integer](bits int) func(x, y T) T {
	return func(x, y T) T { return x << uint(max(0, min(int64(y), int64(bits)-1))) }
}

func shiftRight[T exec.Integer](bits int) func(x, y T) T {
	return func(x, y T) T { return x >> uint(max(0, min(int64(y), int64(bits)-1))) }
}
