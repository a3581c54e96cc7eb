package dataset

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
)

// splitEpoch keys the shuffle that comes before the split. No epoch has this
// number.
const splitEpoch = math.MaxUint64

// keyTag ends the key of every shuffle; see the package's documentation.
const keyTag = "trainerd/dataset"

// arrange fills order with 0..len(order)-1, shuffled when asked. What it gives
// must never change: it decides which rows a resumed training sees.
func arrange(order []uint32, shuffle bool, seed, epoch uint64) {
	for i := range order {
		order[i] = uint32(i)
	}
	if !shuffle {
		return
	}
	mix(order, random(seed, epoch, keyTag))
}

// random returns the source of an epoch's numbers. The tag has 16 bytes.
func random(seed, epoch uint64, tag string) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], epoch)
	copy(key[16:], tag)
	return rand.NewChaCha8(key)
}

func mix(order []uint32, source *rand.ChaCha8) {
	for i := len(order) - 1; i > 0; i-- {
		// The product's high half lies in [0, i]. Its bias, below 2^-32, is
		// far less than any training could tell.
		j, _ := bits.Mul64(source.Uint64(), uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
}
