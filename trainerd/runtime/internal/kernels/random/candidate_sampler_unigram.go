package random

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Samplers of classes whose frequencies are given, or which are all.
var unigramSamplerOps = exec.OpTable{
	"FixedUnigramCandidateSampler":        {Flags: exec.Stateful | exec.WritesState, Build: buildSampler(unigramClasses)},
	"LearnedUnigramCandidateSampler":      {Flags: exec.Stateful | exec.WritesState, Build: buildSampler(learnedClasses)},
	"ThreadUnsafeUnigramCandidateSampler": {Flags: exec.Stateful | exec.WritesState, Build: buildSampler(learnedClasses)},
	"AllCandidateSampler":                 {Build: buildAllSampler},
}

// buildAllSampler builds the op that samples every class once.
func buildAllSampler(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("num_sampled")
	if n < 1 || n > 1<<24 {
		b.Fail("%d samples", n)
		return nil, b.Err()
	}
	return func(c *exec.KernelContext) error {
		sampled, expected, own := c.Out(0, exec.Int64, n), c.OutLike(1, exec.Float32, c.In(0)), c.Out(2, exec.Float32, n)
		for i := range n {
			exec.SetInt(sampled, i, i)
			exec.Elems[float32](own)[i] = 1
		}
		for i := range exec.Elems[float32](expected) {
			exec.Elems[float32](expected)[i] = 1
		}
		return nil
	}, nil
}

// unigramClasses are classes with the frequencies in an attribute or a file,
// each to the power of the distortion.
func unigramClasses(b *exec.OpConstruction, n int) classes {
	weights, err := unigrams(b)
	if err != nil {
		b.Fail("%v", err)
		return classes{}
	}
	distortion, reserved := b.Float("distortion"), b.Int("num_reserved_ids")
	shards, shard := b.Int("num_shards"), b.Int("shard")
	if shards < 1 || shard < 0 || shard >= shards || reserved < 0 || reserved > n || n > 1<<28 {
		b.Fail("num_reserved_ids=%d, shard=%d, num_shards=%d, range_max=%d", reserved, shard, shards, n)
		return classes{}
	}
	own := make([]float32, 0, len(weights))
	for i := range reserved {
		if i%shards == shard {
			own = append(own, 0)
		}
	}
	total := float32(0)
	for i, w := range weights {
		if (i+reserved)%shards == shard {
			v := float32(math.Pow(float64(w), float64(float32(distortion))))
			own = append(own, v)
			total += v
		}
	}
	if len(own) != n || !(total > 0) {
		b.Fail("range_max is %d, %d classes have frequencies, of %v in all", n, len(own), total)
		return classes{}
	}
	a := newAliases(own)
	return classes{
		draw: a.draw,
		probability: func(class float64) float64 {
			if class < 0 || class >= float64(len(own)) {
				return 0
			}
			return float64(own[int(class)] / total)
		},
	}
}

// unigrams returns the frequencies: those in the last column of a file of
// commas, if one is named.
func unigrams(b *exec.OpConstruction) ([]float32, error) {
	name := b.String("vocab_file")
	if name == "" {
		return b.Attr("unigrams").GetList().GetF(), nil
	}
	path, err := b.ResolvePath(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []float32
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		v, err := strconv.ParseFloat(string(line[bytes.LastIndexByte(line, ',')+1:]), 32)
		if err != nil {
			return nil, err
		}
		list = append(list, float32(v))
	}
	return list, nil
}

// aliases is Walker's table: each class shares its place with another one.
type aliases struct {
	own   []float32 // how likely a place is its own class
	other []int
}

func newAliases(weights []float32) *aliases {
	n := len(weights)
	a := &aliases{make([]float32, n), make([]int, n)}
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
	}
	share := make([]float64, n)
	var rich, poor []int
	for i, w := range weights {
		share[i] = float64(w*float32(n)) / sum
		if share[i] < 1 {
			poor = append(poor, i)
		} else {
			rich = append(rich, i)
		}
	}
	for len(rich) > 0 && len(poor) > 0 {
		p, r := poor[len(poor)-1], rich[len(rich)-1]
		poor, rich = poor[:len(poor)-1], rich[:len(rich)-1]
		a.other[p] = r
		share[r] -= 1 - share[p]
		if share[r] < 1 {
			poor = append(poor, r)
		} else {
			rich = append(rich, r)
		}
	}
	for i := range share {
		a.own[i] = float32(share[i])
	}
	for _, i := range append(rich, poor...) { // but for rounding, these have their place alone
		a.own[i], a.other[i] = 1, i
	}
	return a
}

func (a *aliases) draw(w *philox.Words) int64 {
	r := philox.Float32(w.Next())
	i := int(w.Uint32n(uint32(len(a.own))))
	if r < a.own[i] {
		return int64(i)
	}
	return int64(a.other[i])
}
