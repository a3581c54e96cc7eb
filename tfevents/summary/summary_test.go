package summary

import (
	"bytes"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

func TestTable(t *testing.T) {
	v := Table("t", []string{"a", "b"}, []string{"1", "x|y"}, []string{"two\nlines"})
	want := "| a | b |\n|---|---|\n| 1 | x\\|y |\n| two<br>lines | |\n"
	if got := string(v.GetTensor().GetStringVal()[0]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextsShape(t *testing.T) {
	for _, shape := range [][]int64{{1}, {2, 2}, {-1, -2}, {math.MaxInt64, 4}, {math.MaxInt32, math.MaxInt32}} {
		if _, err := Texts("t", shape, "a", "b"); err == nil {
			t.Errorf("two texts of shape %v: no error", shape)
		}
	}
	if _, err := Texts("t", []int64{0, 5}); err != nil {
		t.Error(err)
	}
}

func TestDescribeLeavesSharedMetadata(t *testing.T) {
	shared := Text("a", "x")
	v := &tfpb.Summary_Value{Tag: "b", Metadata: shared.Metadata}
	Describe(v, "name", "text")
	if shared.GetMetadata().GetDisplayName() != "" || v.GetMetadata().GetDisplayName() != "name" || v.GetMetadata().GetPluginData().GetPluginName() != PluginText {
		t.Errorf("metadata %v and %v", shared.GetMetadata(), v.GetMetadata())
	}
}

func TestHistogram(t *testing.T) {
	rows := func(v *tfpb.Summary_Value) (out []float64) {
		b := v.GetTensor().GetTensorContent()
		for ; len(b) > 0; b = b[8:] {
			var bits uint64
			for i := range 8 {
				bits |= uint64(b[i]) << (8 * i)
			}
			out = append(out, math.Float64frombits(bits))
		}
		return out
	}
	most := math.MaxFloat64
	for _, tc := range []struct {
		name    string
		values  []float64
		buckets int
		want    []float64
	}{
		{"ends belong to the outer buckets", []float64{0, 1, 2}, 2, []float64{0, 1, 1, 1, 2, 2}},
		{"one value", []float64{3}, 2, []float64{3, 3, 0, 3, 3, 1}},
		{"none", nil, 2, []float64{0, 0, 0, 0, 0, 0}},
		{"one bucket", []float64{-1, 5}, 1, []float64{-1, 5, 2}},
		{"as wide as can be", []float64{-most, -1, most}, 2, []float64{-most, 0, 1, 0, most, 2}},
	} {
		v, err := Histogram(tc.name, tc.values, tc.buckets)
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(v); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if _, err := Histogram("h", []float64{1, v}, 3); !errors.Is(err, ErrNotFinite) {
			t.Errorf("value %v: %v, want %v", v, err, ErrNotFinite)
		}
	}
}

func TestEncodePNG(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	opaque := image.NewRGBA(image.Rect(10, 10, 13, 12))
	for i := range opaque.Pix {
		opaque.Pix[i] = 255
	}
	for _, tc := range []struct {
		name       string
		m          image.Image
		colorspace int
	}{
		{"grey", image.NewGray(image.Rect(0, 0, 3, 2)), 1},
		{"deep grey", image.NewGray16(image.Rect(0, 0, 3, 2)), 1},
		{"opaque", opaque, 3},
		{"transparent", clear, 4},
		{"jpeg's own", image.NewYCbCr(image.Rect(0, 0, 3, 2), image.YCbCrSubsampleRatio444), 3},
	} {
		e, err := EncodePNG(tc.m)
		if err != nil {
			t.Fatal(err)
		}
		if e.Width != 3 || e.Height != 2 || e.Colorspace != tc.colorspace {
			t.Errorf("%s: %dx%d, colorspace %d, want 3x2 and %d", tc.name, e.Width, e.Height, e.Colorspace, tc.colorspace)
		}
		back, err := EncodedImageOf(e.Data)
		if diff := cmp.Diff(e, back); err != nil || diff != "" {
			t.Errorf("%s: the encoded image is taken for another: %v\n%s", tc.name, err, diff)
		}
	}
	if _, err := EncodePNG(image.NewGray(image.Rectangle{})); err == nil {
		t.Error("image without pixels: no error")
	}
	if _, err := EncodedImageOf([]byte("no image")); err == nil {
		t.Error("no image: no error")
	}
}

func TestEncodeGIF(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 4, 3), palette.Plan9)
	e, err := EncodeGIF(&gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{5, 5}})
	if err != nil {
		t.Fatal(err)
	}
	back, err := gif.DecodeAll(bytes.NewReader(e.Data))
	if err != nil || len(back.Image) != 2 || e.Width != 4 || e.Height != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := EncodeGIF(&gif.GIF{}); err == nil {
		t.Error("animation without images: no error")
	}
}

func TestImagesOfDifferentSizes(t *testing.T) {
	if _, err := Images("i", EncodedImage{Width: 1, Height: 2}, EncodedImage{Width: 2, Height: 1}); err == nil {
		t.Error("no error")
	}
	if _, err := Images("i"); err == nil {
		t.Error("no images: no error")
	}
}

func TestEncodeWAV(t *testing.T) {
	a := &AudioClip{SampleRate: 8000, Samples: []float32{0, 1, -1, 2, -2, 0.5, float32(math.NaN()), 1.0 / 65536}}
	b, err := a.EncodeWAV()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(b[wavHeaderSize:]), "0000ff7f0080ff7f0080004000000100"; got != want {
		t.Errorf("samples %s, want %s", got, want)
	}
	for name, a := range map[string]*AudioClip{
		"no rate":       {Samples: []float32{0}},
		"half a frame":  {SampleRate: 1, Channels: 2, Samples: []float32{0}},
		"many channels": {SampleRate: 1, Channels: 40000},
	} {
		if _, err := a.EncodeWAV(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := Audio("a", a); err == nil {
			t.Errorf("%s, new style: no error", name)
		}
	}
}

func TestPRCurveBadInput(t *testing.T) {
	for name, err := range map[string]error{
		"unequal":       second(PRCurveOf([]bool{true}, nil, nil, 0)),
		"weights":       second(PRCurveOf([]bool{true}, []float32{1}, []float32{1, 2}, 0)),
		"above one":     second(PRCurveOf([]bool{true}, []float32{1.5}, nil, 0)),
		"not a number":  second(PRCurveOf([]bool{true}, []float32{float32(math.NaN())}, nil, 0)),
		"one threshold": second(PRCurveOf(nil, nil, nil, 1)),
		"short row":     second((&PRCurve{TruePositives: []float64{1}}).Value("p")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c, err := PRCurveOf([]bool{true, false}, []float32{1, 0}, []float32{3, 5}, 0)
	if err != nil || len(c.Recall) != defaultThresholds || c.TruePositives[0] != 3 || c.TrueNegatives[1] != 5 {
		t.Errorf("weighted curve %+v, %v", c, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestMeshBadInput(t *testing.T) {
	vertices := [][3]float32{{}, {}, {}}
	for name, m := range map[string]*Mesh{
		"no vertices": {},
		"face":        {Vertices: vertices, Faces: [][3]int32{{0, 1, 3}}},
		"colours":     {Vertices: vertices, Colors: [][3]uint8{{}}},
		"config":      {Vertices: vertices, Config: "{"},
	} {
		if _, err := m.Values("m"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	values, err := (&Mesh{Vertices: vertices}).Values("cloud")
	if err != nil || len(values) != 1 || values[0].GetTag() != "cloud_VERTEX" {
		t.Errorf("a cloud gives %v, %v", values, err)
	}
}

// TestHParamsGroup compares the group's name with TensorFlow's for the same
// hyperparameters.
func TestHParamsGroup(t *testing.T) {
	v, err := HParams(map[string]any{
		"lr": 1e-05, "big": 1e16, "whole": 2.0, "n": 3, "flag": true, "s": "é\"\\\n\t\x01\x7f😀", "third": 1.0 / 3, "neg": -1.5e-7, "mid": 123456789012345.0,
	}, "", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	data := new(tbpb.HParamsPluginData)
	if err := proto.Unmarshal(v.GetMetadata().GetPluginData().GetContent(), data); err != nil {
		t.Fatal(err)
	}
	const want = "32793baefdfaf90ecb95ecd2a2768231f106c1ee0fba270d51cd7c891514c051"
	if got := data.GetSessionStartInfo().GetGroupName(); got != want {
		t.Errorf("group %q, want %q", got, want)
	}
	for name, value := range map[string]any{"list": []int{1}, "nil": nil, "bytes": "\xff"} {
		if _, err := HParams(map[string]any{name: value}, "", time.Unix(0, 0)); err == nil {
			t.Errorf("value of %s: no error", name)
		}
	}
	if _, err := HParams(map[string]any{"\xff": 1}, "", time.Unix(0, 0)); err == nil {
		t.Error("name that is not UTF-8: no error")
	}
}

func TestColorspaceOfPaletted(t *testing.T) {
	see := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Transparent})
	if got := colorspace(see); got != 4 {
		t.Errorf("transparent palette: %d, want 4", got)
	}
}
