//go:build unix

package world

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// Some programs use the numbers in the names of their checkpoints again: a few names take turns, or steps begin
// again with each epoch. Only the time of a checkpoint tells which is the newest.

// savesAnEpoch is how many saves there are in an epoch whose steps begin again.
const savesAnEpoch = 3

// reuse has some programs use numbers again. A chief that comes after one which could record nothing takes numbers
// for steps.
func (p *childPlan) reuse(rnd *rand.Rand) {
	unrecorded := p.nodes > 1 && slices.ContainsFunc(p.lives, func(l life) bool { return strings.Contains(l.event.name, fullForHours.name) })
	if unrecorded || p.silent || p.way == nil || !p.way.hasSteps() || p.way.counted || len(p.way.files(1)) != 1 || rnd.IntN(3) > 0 {
		return
	}
	way := *p.way
	way.counted = true
	if way.turns = 2 * rnd.Int64N(3); way.turns > 0 {
		way.name += fmt.Sprintf(", %d names in turn", way.turns)
	} else {
		way.name, way.pattern, way.epochs = way.name+", by epochs", "epoch*.safetensors", true
	}
	p.way, p.signal, p.second, p.picks = &way, "", noSecondName, false
	p.every = 3 + rnd.Int64N(8)
	p.options = maps.Clone(p.options)
	for _, key := range []string{"child.keep_best", "child.max_rewinds"} { // what has no step is not the best one, nor one to go back to
		delete(p.options, key)
	}
}

// label returns what the name of a save has for its number.
func (s *saving) label(number int64) string {
	switch {
	case s.turns > 0:
		return fmt.Sprint(number % s.turns)
	case s.epochs:
		return fmt.Sprintf("epoch%d-step-%d", number/savesAnEpoch, number%savesAnEpoch)
	}
	return fmt.Sprint(number)
}

// numberOf returns the number of the save with a name, or one that takes its place.
func (s *saving) numberOf(name string) int64 {
	number := stepOfName(name)
	if !s.epochs {
		return number
	}
	var epoch int64
	fmt.Sscanf(filepath.Base(name), "epoch%d", &epoch)
	return epoch*savesAnEpoch + number
}
