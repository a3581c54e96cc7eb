package integrity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// maxListing bounds what is read of a file that lists others.
const maxListing = 256 << 20

// checkFolder looks whether all is there that the files of a folder say belongs
// to it. files are all of the checkpoint.
func (x *checker) checkFolder(dir string, files []string) error {
	var own []string
	for _, name := range files {
		if path.Dir(name) == dir {
			own = append(own, path.Base(name))
		}
	}
	for _, check := range []func(dir string, own, all []string) error{x.checkIndexes, checkNumbered, x.checkDistributed, x.checkOrbax, x.checkLatest, checkRanks} {
		if err := check(dir, own, files); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// checkIndexes looks for the shards that an index of transformers names.
func (x *checker) checkIndexes(dir string, own, all []string) error {
	for _, name := range own {
		if !strings.HasSuffix(name, ".index.json") {
			continue
		}
		b, err := x.read(path.Join(dir, name))
		if err != nil {
			return err
		}
		var index struct {
			Weights map[string]string `json:"weight_map"`
		}
		if err := unmarshal(b, &index); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for tensor, shard := range index.Weights {
			if !slices.Contains(all, path.Join(dir, shard)) {
				return fmt.Errorf("%s names %s for %s, which is missing", name, shard, tensor)
			}
		}
	}
	return nil
}

var numberedShard = lazyregexp.New(`^(.*?)-?(\d{5})-of-(\d{5})(\..*)$`)

// checkNumbered looks whether of shards 00001-of-00003 all are there, and the
// index that transformers writes after them.
func checkNumbered(_ string, own, _ []string) error {
	seen := map[string]int{}
	for _, name := range own {
		m := numberedShard().FindStringSubmatch(name)
		if m == nil || bundleFile().MatchString(name) {
			continue
		}
		seen[m[1]+"\x00"+m[3]+"\x00"+m[4]]++
	}
	for key, n := range seen {
		parts := strings.Split(key, "\x00")
		want, _ := strconv.Atoi(parts[1])
		if n < want {
			return fmt.Errorf("%d of %d files %s-NNNNN-of-%s%s are missing", want-n, want, parts[0], parts[1], parts[2])
		}
		if index := parts[0] + parts[2] + ".index.json"; (parts[0] == "model" || parts[0] == "pytorch_model") && !slices.Contains(own, index) {
			return fmt.Errorf("%s is missing, which is written after the shards", index)
		}
	}
	return nil
}

var shardName = lazyregexp.New(`__\d+_\d+\.distcp`)

// checkDistributed looks for what torch.distributed.checkpoint writes last, and
// for the files that it names.
func (x *checker) checkDistributed(dir string, own, _ []string) error {
	if !slices.Contains(own, ".metadata") {
		if slices.ContainsFunc(own, func(name string) bool { return path.Ext(name) == ".distcp" }) {
			return errors.New(".metadata is missing, which is written last")
		}
		return nil
	}
	b, err := x.read(path.Join(dir, ".metadata"))
	if err != nil {
		return err
	}
	for _, name := range shardName().FindAll(b, -1) {
		if !slices.Contains(own, string(name)) {
			return fmt.Errorf("%s is missing, which .metadata names", name)
		}
	}
	return x.verifyShards(filepath.Join(x.root.Name(), filepath.FromSlash(dir)))
}

// verifyShards reads all that torch.distributed.checkpoint has written into a folder. What this reader does not
// know, such as the type of a tensor, says nothing about the rest.
func (x *checker) verifyShards(dir string) error {
	r, err := dcp.Open(dir)
	if err != nil {
		return cmp.Or(harm(err), x.ctx.Err())
	}
	for _, err := range r.Verify(x.ctx) {
		if err := harm(err); err != nil {
			return err
		}
	}
	return x.ctx.Err()
}

// harm returns an error that says of files that they are damaged, or cannot be read, and nil for another.
func harm(err error) error {
	if _, damaged := errors.AsType[*ckptfmt.CorruptError](err); damaged || ckptdir.IsUnreadable(err) {
		return err
	}
	return nil
}

// checkOrbax looks for the marks of a checkpoint of orbax that is complete.
func (x *checker) checkOrbax(dir string, own, all []string) error {
	if slices.Contains(own, "_CHECKPOINT_METADATA") {
		b, err := x.read(path.Join(dir, "_CHECKPOINT_METADATA"))
		if err != nil {
			return err
		}
		var meta map[string]any
		if err := unmarshal(b, &meta); err != nil {
			return fmt.Errorf("_CHECKPOINT_METADATA: %w", err)
		}
		if at, ok := meta["commit_timestamp_nsecs"]; ok && at == nil {
			return errors.New("_CHECKPOINT_METADATA has no time of a commit: orbax has not finished writing it")
		}
	}
	ocdbt := slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, dir+"/ocdbt.process_") })
	if ocdbt && !slices.Contains(own, "manifest.ocdbt") {
		return errors.New("manifest.ocdbt is missing, which orbax writes last")
	}
	if slices.Contains(own, "manifest.ocdbt") && slices.Contains(own, "_sharding") && !slices.Contains(own, "_METADATA") {
		return errors.New("_METADATA is missing")
	}
	return nil
}

// checkLatest looks for what the file "latest" of DeepSpeed names.
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

// unmarshal reads JSON as far as it is of the form of v: a program may have a
// file of that name for something else, which is not damage.
func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		return nil
	}
	return err
}

// read returns the content of a file that lists others.
func (x *checker) read(name string) ([]byte, error) {
	f, err := x.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxListing+1))
	if err == nil && len(b) > maxListing {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it is too large for a list of files")}
	}
	return b, err
}
