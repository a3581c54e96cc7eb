//go:build amd64 && !noasm

package vec

// winogradLanes is the fewest channels that are transformed at once.
const winogradLanes = 8

// sandwiches are the functions of the transformations, with AVX2 and AVX-512.
var sandwiches = [...][2]func(d *float32, toRow, toCol, toTile int, x *float32, row, col, tile, channels, tiles int){
	winogradInput:      {sWinogradInputAVX2, sWinogradInputAVX512},
	winogradFilter:     {sWinogradFilterAVX2, sWinogradFilterAVX512},
	winogradOutput:     {sWinogradOutputAVX2, sWinogradOutputAVX512},
	winogradOutputGrad: {sWinogradOutputGradAVX2, sWinogradOutputGradAVX512},
	winogradFilterGrad: {sWinogradFilterGradAVX2, sWinogradFilterGradAVX512},
}

// transformWide transforms the first channels, and returns their number.
func transformWide[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int, w winograd) int {
	if !assembly || !single[T]() {
		return 0
	}
	f, n := sandwiches[w][0], channels&^(winogradLanes-1)
	if avx512 && channels%16 == 0 {
		f, n = sandwiches[w][1], channels
	}
	if n > 0 {
		f(f32(d), 4*to.Row, 4*to.Col, 4*to.Next, f32(x), 4*from.Row, 4*from.Col, 4*from.Next, n, count)
	}
	return n
}
