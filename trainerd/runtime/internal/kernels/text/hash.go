package text

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/farmhash"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that map strings to buckets.
var hashOps = exec.OpTable{
	"StringToHashBucket":       {Build: buildLegacyHash},
	"StringToHashBucketStrong": {Build: buildStrongHash},
	"StringToHashBucketFast":   {Build: buildHashBucket},
}

// buildLegacyHash builds the hash of TensorFlow's first releases: a variant of
// Murmur's.
func buildLegacyHash(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("num_buckets")
	if n < 1 {
		b.Fail("attribute num_buckets is %d", n)
	}
	return elem.Convert(func(s []byte) int64 { return int64(elem.Hash64(s) % uint64(max(1, n))) }), nil
}

// buildStrongHash builds the hash that nobody can find collisions of without
// the key: SipHash-2-4.
func buildStrongHash(b *exec.OpConstruction) (exec.Kernel, error) {
	n, key := b.Int("num_buckets"), b.Ints("key")
	if n < 1 || len(key) != 2 {
		b.Fail("attributes num_buckets=%d, key=%v", n, key)
		return nil, nil
	}
	k0, k1 := uint64(key[0]), uint64(key[1])
	return elem.Convert(func(s []byte) int64 { return int64(elem.SipHash(k0, k1, s) % uint64(n)) }), nil
}

func buildHashBucket(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("num_buckets")
	if n < 1 {
		b.Fail("attribute num_buckets is %d", n)
	}
	return elem.Convert(func(s []byte) int64 { return int64(farmhash.Fingerprint64(s) % uint64(max(1, n))) }), nil
}
