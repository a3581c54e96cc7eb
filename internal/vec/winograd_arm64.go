//go:build arm64 && !noasm

package vec

// winogradLanes is the fewest channels that are transformed at once.
const winogradLanes = 4

// sandwiches are the functions of the transformations.
var sandwiches = [...]func(d *float32, toRow, toCol, toTile int, x *float32, row, col, tile, channels, tiles int){
	winogradInput:      sWinogradInputNEON,
	winogradFilter:     sWinogradFilterNEON,
	winogradOutput:     sWinogradOutputNEON,
	winogradOutputGrad: sWinogradOutputGradNEON,
	winogradFilterGrad: sWinogradFilterGradNEON,
}

// transformWide transforms the first channels, and returns their number.
func transformWide[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int, w winograd) int {
	if !single[T]() {
		return 0
	}
	n := channels &^ (winogradLanes - 1)
	if n > 0 {
		sandwiches[w](f32(d), 4*to.Row, 4*to.Col, 4*to.Next, f32(x), 4*from.Row, 4*from.Col, 4*from.Next, n, count)
	}
	return n
}
