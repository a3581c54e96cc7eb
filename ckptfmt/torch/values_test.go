package torch_test

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }
func list(items ...string) string  { return "](" + strings.Join(items, "") + "e" }
func dict(items ...string) string  { return "}(" + strings.Join(items, "") + "u" }
func bytesOf(s string) string      { return "C" + string([]byte{byte(len(s))}) + s }

func global(name string) string {
	at := strings.LastIndexByte(name, '.')
	return "c" + name[:at] + "\n" + name[at+1:] + "\n"
}

func call(name string, args ...string) string { return global(name) + tuple(args...) + "R" }

const (
	stored  = "(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
	bytes4  = "(X\x07\x00\x00\x00storagectorch.storage\nUntypedStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
	ordered = "ccollections\nOrderedDict\n)R"
	v2      = "torch._utils._rebuild_tensor_v2"
	v3      = "torch._utils._rebuild_tensor_v3"
)

// scalar is a tensor of one number.
var scalar = call(v2, stored, "K\x00", ")", ")", "\x89", ordered)

// named returns the names of a file's tensors, with the kind of those that cannot be read.
func named(r *torch.Reader) []string {
	list := []string{}
	for _, p := range r.Parts() {
		name := p.Name
		if p.Err != nil {
			name += " " + p.Foreign
		}
		list = append(list, name)
	}
	return list
}

// TestValues has what programs save next to tensors, and what torch makes tensors of.
func TestValues(t *testing.T) {
	const getattr = "builtins.getattr"
	typeOf := func(typ, order string) string {
		return call("numpy.dtype", text(typ)) + tuple("K\x03", text(order)) + "b"
	}
	numpy := func(typ, elements string) string {
		return call("numpy.core.multiarray.scalar", typeOf(typ, "<"), elements)
	}
	ones := tuple(strings.Repeat("K\x01", 254))
	type file struct {
		value    string
		tensors  []string
		metadata map[string]string
	}
	for name, c := range map[string]file{
		"alone":            {scalar, []string{"tensor"}, nil},
		"a list":           {list(scalar, "K\x07"), []string{"0"}, map[string]string{"1": "7"}},
		"a tuple":          {tuple(scalar), []string{"0"}, nil},
		"a set":            {call("builtins.set", list(scalar)), []string{"0"}, nil},
		"a frozen set":     {call("__builtin__.frozenset", list(scalar)), []string{"0"}, nil},
		"a deque":          {call("collections.deque", list(scalar)), []string{"0"}, nil},
		"a called list":    {call("builtins.list", list(scalar)), []string{"0"}, nil},
		"an empty set":     {call("builtins.set"), []string{}, nil},
		"a set of no list": {call("builtins.set", tuple(scalar)), []string{}, nil},
		"a device":         {dict(text("d") + call("torch.device", text("cuda"), "K\x01")), []string{}, map[string]string{"d": "cuda"}},
		"a device alone":   {dict(text("d") + call("torch.device", text("cpu"))), []string{}, map[string]string{"d": "cpu"}},
		"a type of NumPy":  {dict(text("d") + global("numpy.dtypes.Float64DType")), []string{}, nil},
		"a device of none": {dict(text("d") + call("torch.device")), []string{}, nil},
		"a number of another": {
			dict(text("u") + call("decimal.Decimal", text("0.5"))), []string{}, nil,
		},
		"bytes of Latin-1": {dict(text("b") + call("_codecs.encode", text("\xc3\xa9"), text("latin1"))), []string{}, nil},
		"a counter":        {call("collections.Counter", dict(text("a")+"K\x01")), []string{}, map[string]string{"a": "1"}},
		"a default dict":   {global("collections.defaultdict") + tuple(global("builtins.list")) + "R" + text("a") + scalar + "s", []string{"a"}, nil},
		"an ordered dict":  {call("collections.OrderedDict", list(list(text("a"), scalar), tuple(text("b"), "K\x02"))), []string{"a"}, map[string]string{"b": "2"}},
		"a namespace":      {"cargparse\nNamespace\n)\x81" + dict(text("w")+scalar) + "b", []string{"w"}, nil},
		"random numbers": {
			dict(text("r") + call("numpy.random._pickle.__randomstate_ctor", text("MT19937")) + dict(text("key")+numpy("u4", bytesOf("1234"))) + "b"),
			[]string{"r.key"}, nil,
		},
		"settings": {dict(text("c") + "comegaconf.dictconfig\nDictConfig\n)\x81" + dict(text("_content")+dict(text("lr")+"K\x02")) + "b"), []string{}, map[string]string{"c._content.lr": "2"}},
		"enumerations": {
			dict(text("a")+call("megatron.core.enums.ModelType", "K\x01"), text("b")+call("signal.Signals", "K\x0f"), text("w")+scalar), []string{"w"}, map[string]string{"a": "1"},
		},
		"an object of a library": {
			dict(text("s") + "cdeepspeed.runtime.fp16.loss_scaler\nParamSet\n)\x81" + dict(text("w")+scalar, text("cur_scale")+"K\x01") + "b"),
			[]string{"s.w"}, map[string]string{"s.cur_scale": "1"},
		},
		"a configuration of a model": {
			dict(text("c") + "ctransformers.models.bert.configuration_bert\nBertConfig\n)\x81" + dict(text("layers")+"K\x02") + "b"),
			[]string{}, map[string]string{"c.layers": "2"},
		},
		"a time of a place": {dict(text("t")+call(getattr, global("zoneinfo.ZoneInfo"), text("_unpickle"))+tuple(text("UTC"), "\x89")+"R", text("w")+scalar), []string{"w"}, nil},
		"a time in a zone":  {dict(text("t")+call("datetime.timezone", call("datetime.timedelta", "K\x00")), text("w")+scalar), []string{"w"}, nil},
		"a word of NumPy":   {dict(text("u")+numpy("U2", bytesOf("a\x00\x00\x00\xfc\x00\x00\x00")), text("s")+numpy("S1", bytesOf("b"))), []string{}, map[string]string{"u": "a\u00fc", "s": "b"}},
		"a word of a big-endian machine": {
			dict(text("u") + call("numpy.core.multiarray.scalar", typeOf("U2", ">"), bytesOf("\x00\x00\x00a\x00\x00\x00\xfc"))), []string{}, map[string]string{"u": "a\u00fc"},
		},
		"a word whose type has no order": {
			dict(text("u") + call("numpy.core.multiarray.scalar", call("numpy.dtype", text("U1"))+tuple("K\x03")+"b", bytesOf("a\x00\x00\x00"))), []string{}, map[string]string{"u": "a"},
		},
		"a word that ends in a letter": {dict(text("u") + numpy("U2", bytesOf("a\x00\x00\x00\xfc\x00\x00"))), []string{}, map[string]string{"u": "a"}},
		"an array of words": {
			dict(text("u") + call("numpy.core.multiarray._reconstruct", "N") + tuple("K\x01", tuple("K\x02"), typeOf("S1", "|"), "\x89", bytesOf("ab")) + "b"),
			[]string{"u array"}, nil,
		},
		"a list in itself":   {"]q\x05(h\x05" + scalar + "e", []string{"1"}, nil},
		"an owner in a part": {"cargparse\nNamespace\n)\x81q\x05" + dict(text("w")+scalar, text("parts")+list("cargparse\nNamespace\n)\x81"+dict(text("owner")+"h\x05", text("x")+scalar)+"b")) + "b", []string{"w", "parts.0.x"}, nil},
		"a state of no dict": {"cargparse\nNamespace\n)\x81" + tuple(scalar) + "b", []string{}, nil},
		"keys of all kinds": {
			dict("N"+scalar, "\x88"+scalar, "\x89"+scalar, "K\x07"+scalar, tuple(text("a"), "K\x01")+scalar, "cargparse\nNamespace\n)\x81"+scalar),
			[]string{"None", "True", "False", "7", "(a, 1)", "argparse.Namespace"}, nil,
		},
		"a name twice":    {dict(text("a")+dict(text("b")+scalar), text("a.b")+scalar, text("a.b\"")+scalar), []string{"a.b", "a.b#2", "a.b\""}, nil},
		"arrays twice":    {dict(text("a")+dict(text("b")+numpy("f4", bytesOf("1234"))), text("a.b")+numpy("f4", bytesOf("5678"))), []string{"a.b", "a.b#2"}, nil},
		"three of a name": {dict(text("a")+list(scalar, scalar), text("a.0")+scalar, text("a.0#2")+scalar), []string{"a.0", "a.1", "a.0#2", "a.0#2#2"}, nil},

		"of the first version":     {call("torch._utils._rebuild_tensor", stored, "K\x00", ")", ")"), []string{"tensor"}, nil},
		"with metadata":            {call(v2, stored, "K\x00", ")", ")", "\x89", ordered, dict()), []string{"tensor"}, nil},
		"with metadata of none":    {call(v2, stored, "K\x00", ")", ")", "\x89", ordered, "N"), []string{"tensor"}, nil},
		"of 254 dimensions":        {call(v2, stored, "K\x00", ones, ones, "\x89", ordered), []string{"tensor"}, nil},
		"254, the short way":       {list(scalar, call(v2, stored, "K\x00", ones, ones, "\x89", ordered)), []string{"0", "1"}, nil},
		"conjugated":               {call(v2, stored, "K\x00", ")", ")", "\x89", ordered, dict(text("conj")+"\x88")), []string{"tensor conjugated"}, nil},
		"untyped":                  {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, global("torch.uint32")), []string{"tensor"}, nil},
		"untyped, with metadata":   {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, global("torch.uint32"), dict()), []string{"tensor"}, nil},
		"untyped and conjugated":   {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, global("torch.uint32"), dict(text("neg")+"\x88")), []string{"tensor conjugated"}, nil},
		"a parameter":              {call("torch._utils._rebuild_parameter", scalar, "\x88", ordered), []string{"tensor"}, nil},
		"a parameter with a state": {call("torch._utils._rebuild_parameter_with_state", scalar, "\x88", ordered, dict()), []string{"tensor"}, nil},
		"a class":                  {call("torch._tensor._rebuild_from_type_v2", global(v2), global("torch.nn.parameter.Buffer"), tuple(stored, "K\x00", ")", ")", "\x89", ordered), dict()), []string{"tensor"}, nil},
		"a size":                   {dict(text("s")+call("torch.Size", list("K\x02")), text("t")+call("torch.Size", tuple("K\x03"))), []string{}, map[string]string{"s.0": "2", "t.0": "3"}},
		"a number of NumPy":        {numpy("f4", bytesOf("1234")), []string{"tensor"}, nil},
		"with too few bytes":       {numpy("f4", bytesOf("123")), []string{"tensor array"}, nil},
		"with more bytes":          {numpy("f4", bytesOf("12345")), []string{"tensor array"}, nil},
		"two where one is":         {numpy("f4", bytesOf("12345678")), []string{"tensor array"}, nil},
		"of another type":          {numpy("V4", bytesOf("1234")), []string{"tensor array"}, nil},
		"of no bytes":              {numpy("f4", "N"), []string{"tensor array"}, nil},
		"of a type of no state":    {call("numpy.core.multiarray.scalar", call("numpy.dtype", text("f4")), bytesOf("1234")), []string{"tensor array"}, nil},
		"of a type of one":         {call("numpy.core.multiarray.scalar", call("numpy.dtype", text("f4"))+tuple("K\x03")+"b", bytesOf("1234")), []string{"tensor array"}, nil},
		"of a type of no name":     {call("numpy.core.multiarray.scalar", call("numpy.dtype")+tuple("K\x03", text("<"))+"b", bytesOf("1234")), []string{"tensor array"}, nil},
		"of no type":               {call("numpy.core.multiarray.scalar", "N", bytesOf("1234")), []string{"tensor array"}, nil},
		"a scalar of three":        {call("numpy.core.multiarray.scalar", "N", bytesOf("1234"), "N"), []string{}, nil},
		"a buffer of three":        {call("numpy.core.numeric._frombuffer", bytesOf("1234"), "N", tuple("K\x04")), []string{}, nil},
		"a type of four":           {call("numpy.dtype", text("f4"), "\x89", "\x88", text("C")), []string{}, nil},
		"an array of four": {
			call("numpy.core.multiarray._reconstruct", "N") + tuple("K\x01", tuple("K\x01"), "N", "\x89") + "b", []string{}, nil,
		},
		"a state of five": {call("numpy.dtype", text("f4")) + tuple("K\x01", tuple("K\x01"), "N", "\x89", bytesOf("x")) + "b", []string{}, nil},
		"an array of no shape": {
			call("numpy.core.multiarray._reconstruct", "N") + tuple("K\x01", tuple(text("1")), typeOf("u1", "|"), "\x89", bytesOf("x")) + "b", []string{"tensor array"}, nil,
		},
		"an array of less than nothing": {
			call("numpy.core.multiarray._reconstruct", "N") + tuple("K\x01", tuple("J\xff\xff\xff\xff"), typeOf("u1", "|"), "\x89", bytesOf("x")) + "b", []string{"tensor array"}, nil,
		},
		"a type as a value": {dict(text("d") + global("torch.float16")), []string{}, nil},
	} {
		r, err := open(archive(t, zip.Store, "\x80\x03"+c.value+"."))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := named(r); !slices.Equal(got, c.tensors) || !maps.Equal(r.Metadata(), c.metadata) {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got, r.Metadata(), c.tensors, c.metadata)
		}
		by := r.ByName()
		for i := 0; by == nil && i+1 < r.Len(); i++ {
			if r.Name(i) > r.Name(i+1) {
				t.Errorf("%s: names are not in order: %q", name, named(r))
			}
		}
		if !slices.IsSortedFunc(by, func(a, b int32) int { return strings.Compare(r.Name(int(a)), r.Name(int(b))) }) {
			t.Errorf("%s: the order of names is %d", name, by)
		}
		for i, p := range r.Parts() {
			if info, _ := r.Info(i); info.Name != p.Name || p.Err == nil && info.Bytes != 4 || p.Name != r.Name(i) {
				t.Errorf("%s: tensor %d is called %q and %q", name, i, p.Name, info.Name)
			}
		}
	}
}

// TestRefusedValues are what no state dict has.
func TestRefusedValues(t *testing.T) {
	const getattr = "__builtin__.getattr"
	id := func(items ...string) string { return tuple(items...) + "Q" }
	ones := tuple(strings.Repeat("K\x01", 255))
	class, key, cpu := global("torch.FloatStorage"), text("0"), text("cpu")
	const noID, noKey = "a persistent id is not that of a storage", "a storage has no type, key or size"
	const noType, noTensor, noPairs = "a storage has no type or size", "a tensor has no storage, offset, shape or strides", "items that are not pairs"
	for name, c := range map[string]struct{ value, want string }{
		"a module alone":        {id(text("module")), noID},
		"a module of no class":  {id(text("module"), text("x")), noID},
		"no tuple":              {text("storage") + "Q", noID},
		"an empty tuple":        {")Q", noID},
		"four":                  {id(text("storage"), class, key, cpu), noID},
		"seven":                 {id(text("storage"), class, key, cpu, "K\x01", "N", "N"), noID},
		"another word":          {id(text("storagf"), class, key, cpu, "K\x01"), noID},
		"a view":                {id(text("storage"), class, key, cpu, "K\x01", text("v")), "is a view of another one"},
		"a text for a class":    {id(text("storage"), text("torch.FloatStorage"), key, cpu, "K\x01"), noKey},
		"a number for a key":    {id(text("storage"), class, "K\x00", cpu, "K\x01"), noKey},
		"a text for a number":   {id(text("storage"), class, key, cpu, text("1")), noKey},
		"no storage":            {id(text("storage"), global("torch.Size"), key, cpu, "K\x01"), noType},
		"fewer than none":       {id(text("storage"), class, key, cpu, "J\xff\xff\xff\xff"), noType},
		"too many":              {id(text("storage"), class, key, cpu, "\x8a\x07\x01\x00\x00\x00\x00\x00\x04"), noType},
		"no storage at all":     {call(v2, "N", "K\x00", ")", ")", "\x89", ordered), noTensor},
		"no offset":             {call(v2, stored, "N", ")", ")", "\x89", ordered), noTensor},
		"no shape":              {call(v2, stored, "K\x00", "N", ")", "\x89", ordered), noTensor},
		"no strides":            {call(v2, stored, "K\x00", ")", "N", "\x89", ordered), noTensor},
		"a text in a shape":     {call(v2, stored, "K\x00", tuple(text("1")), tuple("K\x01"), "\x89", ordered), noTensor},
		"five arguments":        {call(v2, stored, "K\x00", ")", ")", "\x89"), "is called with 5 arguments"},
		"eight":                 {call(v2, stored, "K\x00", ")", ")", "\x89", ordered, "N", "N"), "is called with 8 arguments"},
		"three":                 {call("torch._utils._rebuild_tensor", stored, "K\x00", ")"), "is called with 3 arguments"},
		"six":                   {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered), "is called with 6 arguments"},
		"nine":                  {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, global("torch.uint32"), "N", "N"), "is called with 9 arguments"},
		"no type":               {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, text("torch.uint32")), "a tensor has no type"},
		"a word for a type":     {call(v3, bytes4, "K\x00", ")", ")", "\x89", ordered, global("torch.Size")), "a tensor has no type"},
		"a text of no pairs":    {call("collections.OrderedDict", text("x")), noPairs},
		"pairs twice":           {call("collections.OrderedDict", list(), list()), noPairs},
		"a pair of three":       {call("collections.OrderedDict", list(tuple(text("a"), "K\x01", "K\x02"))), noPairs},
		"a text for a pair":     {call("collections.OrderedDict", list(text("a"))), noPairs},
		"a list for a key":      {call("collections.OrderedDict", list(tuple(list(), "K\x01"))), "a key that no dict can have"},
		"a parameter of none":   {call("torch._utils._rebuild_parameter", "N", "\x88", ordered), "is called with 3 arguments"},
		"a size of two":         {call("torch.Size", "K\x01", "K\x02"), "is called with 2 arguments"},
		"itself again":          {call("torch._tensor._rebuild_from_type_v2", global("torch._tensor._rebuild_from_type_v2"), "N", tuple(), "N"), "is called with 4 arguments"},
		"a text for a call":     {call("torch._tensor._rebuild_from_type_v2", text("x"), "N", tuple(), "N"), "is called with 4 arguments"},
		"another code":          {call("_codecs.encode", text("x"), text("utf8")), "in a code that Python does not use"},
		"no code":               {call("_codecs.encode", text("x")), "in a code that Python does not use"},
		"a number encoded":      {call("_codecs.encode", "K\x01", text("latin1")), "bytes are not text"},
		"another letter":        {call("_codecs.encode", text("\xc4\x80"), text("latin1")), "bytes have the letter"},
		"an attribute":          {call(getattr, global("torch.Size"), text("_unpickle")), "is called with 2 arguments"},
		"another attribute":     {call(getattr, global("zoneinfo.ZoneInfo"), text("clear_cache")), "is called with 2 arguments"},
		"a getattr of one":      {call(getattr, global("zoneinfo.ZoneInfo")), "is called with 1 arguments"},
		"a made storage":        {global("torch.FloatStorage") + ")\x81", "an object of torch.FloatStorage is made"},
		"a made type":           {global("torch.float32") + ")\x81", "an object of torch.float32 is made"},
		"a made sparse tensor":  {global("torch._utils._rebuild_sparse_tensor") + ")\x81", "an object of torch._utils._rebuild_sparse_tensor is made"},
		"255 dimensions":        {call(v2, stored, "K\x00", ones, ones, "\x89", ordered), noTensor},
		"255, the short way":    {list(scalar, call(v2, stored, "K\x00", ones, ones, "\x89", ordered)), noTensor},
		"a made tensor":         {global("torch.Tensor") + ")\x81", "an object of torch.Tensor is made"},
		"a type that is called": {call("torch.float32"), "is called with 0 arguments"},
		"a shard of a tensor":   {global("torch.distributed.tensor.DTensor"), "it has the shards of one rank: save all with torch.distributed.checkpoint"},
		"a command":             {call("os.system", text("true")), `global "os.system" is not one that a state dict needs`},
		"a class of Python":     {call("subprocess.Popen", list(text("true"))), "subprocess.Popen"},
		"a made one":            {global("subprocess.Popen") + ")\x81", "subprocess.Popen"},
		"a private one":         {call("_posixsubprocess.Fork", list(text("true"))), "save a state dict with torch.save(model.state_dict(), ...)"},
		"Python's own":          {call("__builtin__.eval", text("1")), "__builtin__.eval"},
		"more strides":          {call(v2, stored, "K\x00", ")", tuple("K\x01"), "\x89", ordered), "a tensor of shape [] has strides [1]"},
		"a negative offset":     {call(v2, stored, "J\xff\xff\xff\xff", ")", ")", "\x89", ordered), "a tensor begins at -1 of a storage of 1"},
		"an offset at the end":  {call(v2, stored, "K\x01", ")", ")", "\x89", ordered), "a tensor begins at 1 of a storage of 1"},
		"far behind":            {call(v2, stored, "K\x02", tuple("K\x01"), tuple("K\x01"), "\x89", ordered), "a tensor begins at 2 of a storage of 1"},
		"an overflow":           {call(v2, stored, "K\x00", tuple("J\x00\x00\x00\x7f", "J\x00\x00\x00\x7f", "J\x00\x00\x00\x7f"), tuple("K\x00", "K\x00", "K\x00"), "\x89", ordered), "int64"},
	} {
		const before = "\x80\x03"
		_, err := open(archive(t, zip.Store, before+c.value+"."))
		var refused *torch.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestRefusedOffset is that of the opcode in the file.
func TestRefusedOffset(t *testing.T) {
	const pickle = "\x80\x02N0cos\nsystem\n)R."
	b := archive(t, zip.Store, pickle)
	want := int64(strings.Index(string(b), pickle) + strings.Index(pickle, "R."))
	_, err := open(b)
	if refused := new(torch.RefusedError); !errors.As(err, &refused) || refused.Offset != want {
		t.Errorf("got %v, want offset %d", err, want)
	}
}

// TestInside has tensors of four numbers of a storage of sixteen, or a little more than that.
func TestInside(t *testing.T) {
	number := func(n int) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	numbers := func(list []int) string {
		var items []string
		for _, n := range list {
			items = append(items, number(n))
		}
		return tuple(items...)
	}
	for _, c := range []struct {
		offset        int
		shape, stride []int
		ok            bool
	}{
		{0, []int{4, 4}, []int{4, 1}, true},
		{1, []int{4, 4}, []int{4, 1}, false},
		{0, []int{4, 4}, []int{1, 4}, true},
		{0, []int{4, 3}, []int{4, 2}, false},
		{0, []int{2, 2, 2}, []int{8, 4, 3}, true},
		{0, []int{2, 2, 2}, []int{8, 4, 4}, false},
		{1, []int{2, 2, 2}, []int{8, 4, 3}, false},
		{15, []int{1, 1}, []int{99, 99}, true},
		{16, []int{1}, []int{1}, false},
		{16, []int{0, 9}, []int{99, 99}, true},
		{17, []int{0, 9}, []int{99, 99}, true},
		{1 << 30, []int{3, 0}, []int{4, 1}, true},
		{17, []int{1}, []int{1}, false},
		{0, []int{6, 1}, []int{3, 9}, true},
		{0, []int{6, 1}, []int{4, 9}, false},
		{15, []int{9}, []int{0}, true},
		{0, []int{1 << 20}, []int{0}, true},
		{0, []int{1<<20 + 1}, []int{0}, false},
		{0, []int{2}, []int{-1}, false},
		{0, []int{0}, []int{-1}, false},
	} {
		storage := member{"x/data/0", strings.Repeat("\x01", 16), zip.Store}
		value := call(v2, strings.Replace(strings.Replace(stored, "K\x01tQ", "K\x10tQ", 1), "FloatStorage", "ByteStorage", 1),
			number(c.offset), numbers(c.shape), numbers(c.stride), "\x89", ordered)
		short := "\x80\x02" + value + "."
		r, err := open(archiveOf(t, []member{{"x/data.pkl", short, zip.Store}, storage}))
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if c.offset == 0 && c.shape[0] == 6 && err != nil && !strings.Contains(err.Error(), "at 0 is larger than its storage of 16") {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			if got, err := r.Parts()[0].Load(); err != nil || strings.Trim(string(got.Data), "\x01") != "" {
				t.Errorf("%+v: %v, %v", c, got, err)
			}
		}
	}
}

// TestDepth bounds how deep values may be, whatever they are in.
func TestDepth(t *testing.T) {
	const most = 100
	for name, in := range map[string]func(inner string) string{
		"lists":      func(inner string) string { return list(inner) },
		"tuples":     func(inner string) string { return tuple(inner) },
		"dicts":      func(inner string) string { return dict(text("k") + inner) },
		"namespaces": func(inner string) string { return "cargparse\nNamespace\n)\x81" + dict(text("k")+inner) + "b" },
		"attributes": func(inner string) string { return object("net.Config", dict(text("k")+inner)) },
		"slots":      func(inner string) string { return object("net.Config", tuple("N", dict(text("k")+inner))) },
		"items":      func(inner string) string { return "cnet\nDict\n)\x81" + text("k") + inner + "s" },
		"arguments":  func(inner string) string { return call("net.Config", inner) },
		"modules":    func(inner string) string { return module("net.Net", "", "", "", text("k")+inner) },
		"parameters": func(inner string) string { return module("net.Net", text("k")+inner, "", "", "") },
		"buffers":    func(inner string) string { return module("net.Net", "", text("k")+inner, "", "") },
		"of modules": func(inner string) string { return module("net.Net", "", "", "", "", text("k")+inner) },
	} {
		n := most
		switch name {
		case "namespaces", "attributes", "slots", "items", "modules", "parameters", "buffers":
			n /= 2 // each has a dict
		}
		value := scalar
		for range n {
			value = in(value)
		}
		for _, more := range []bool{false, true} {
			if more {
				value = in(value)
			}
			_, err := open(archive(t, zip.Store, "\x80\x02"+value+"."))
			if (err != nil) != more || more && !errors.As(err, new(*ckptfmt.CorruptError)) {
				t.Errorf("%s, one more: %t: %v", name, more, err)
			}
		}
	}
}

// TestWide bounds how many values and how many letters of names are met where a list is in
// another one many times.
func TestWide(t *testing.T) {
	nones := list(strings.Repeat("N", 4096)) + "q\x00"
	ones := tuple(strings.Repeat("K\x01", 254))
	long := dict(text(strings.Repeat("a", 1<<20))+list(strings.Repeat("N", 300))) + "0"
	for name, value := range map[string]string{
		"values":                     "(" + nones + strings.Repeat("h\x00", 2100) + "t",
		"names":                      long[:len(long)-1],
		"shapes":                     many(call("numpy.core.multiarray._reconstruct", "N")+tuple("K\x01", ones, call("numpy.dtype", text("u1"))+tuple("K\x03", text("|"))+"b", "\x89", bytesOf("a"))+"b", "h\x01", 140_000),
		"buffers that are not saved": many(module("net.Net", "", "", strings.Repeat(text("a"), 5000), ""), "h\x01", 2000),
	} {
		_, err := open(archive(t, zip.Store, "\x80\x02"+value+"."))
		if !errors.As(err, new(*ckptfmt.CorruptError)) || !strings.Contains(fmt.Sprint(err), "too deep or too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
