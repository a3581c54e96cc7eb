package integrity

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// checkLatest checks that what DeepSpeed's file "latest" names exists.
func (x *checker) checkLatest(dir string, own, all []string) error {
	if !slices.Contains(own, "latest") {
		return nil
	}
	b, err := x.read(path.Join(dir, "latest"))
	if err != nil {
		return err
	}
	tag := strings.TrimSpace(string(b))
	if tag == "" || strings.ContainsAny(tag, "/\\\n\x00") {
		return nil // of another kind
	}
	within := path.Join(dir, tag)
	if !slices.ContainsFunc(all, func(name string) bool { return name == within || strings.HasPrefix(name, within+"/") }) {
		return fmt.Errorf("%s is missing, which latest names", tag)
	}
	return nil
}

// deepspeedTag matches the folder of a step of DeepSpeed.
var deepspeedTag = lazyregexp.New(`^global_step(\d+)$`)

// checkParent looks into the file "latest" next to the folder of a step, which
// DeepSpeed writes when all of its processes have saved theirs.
func (x *checker) checkParent(names []string) error {
	if len(names) != 1 {
		return nil
	}
	own := deepspeedTag().FindStringSubmatch(path.Base(names[0]))
	if own == nil {
		return nil
	}
	b, err := x.read(path.Join(path.Dir(names[0]), "latest"))
	if err != nil {
		return nil // a program may do without
	}
	tag := deepspeedTag().FindStringSubmatch(strings.TrimSpace(string(b)))
	if tag == nil {
		return nil
	}
	step, err := strconv.ParseInt(own[1], 10, 64)
	latest, err2 := strconv.ParseInt(tag[1], 10, 64)
	if err == nil && err2 == nil && step > latest {
		return fmt.Errorf("the file latest still names %s: the program has not finished writing it", tag[0])
	}
	return nil
}

var deepspeedRank = lazyregexp.New(`^(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$`)

// checkRanks looks for gaps in the files that the processes of DeepSpeed write,
// one each.
func checkRanks(_ string, own, _ []string) error {
	have := map[string]int{} // of a model-parallel rank
	var ranks int
	for _, name := range own {
		m := deepspeedRank().FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		have[m[2]]++
		ranks = max(ranks, n+1)
	}
	for rank, n := range have {
		if n < ranks {
			return fmt.Errorf("%d of %d files zero_pp_rank_N_mp_rank_%s_optim_states.pt are missing", ranks-n, ranks, rank)
		}
	}
	return nil
}
