//go:build amd64 && !noasm

package blas

import "golang.org/x/sys/cpu"

type enginePair struct {
	single *engine[float32]
	double *engine[float64]
}

func enginesHere() map[string]enginePair {
	list := map[string]enginePair{}
	add := func(name string, avx512 bool) {
		s, d := engines(true, avx512)
		list[name] = enginePair{s, d}
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		add("AVX2", false)
	}
	if cpu.X86.HasAVX512F {
		add("AVX512", true)
	}
	return list
}
