package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Patches of volumes.
var volumePatchesOps = exec.OpTable{
	"ExtractVolumePatches": {Types: exec.PlainTypes | exec.Halves, Build: buildVolumePatches},
}

// buildVolumePatches is buildPatches for volumes.
func buildVolumePatches(b *exec.OpConstruction) (exec.Kernel, error) {
	v := &volumes{window: window{padding: b.String("padding")}, dilation: [3]int{1, 1, 1}}
	if v.padding != "SAME" && v.padding != "VALID" {
		b.Fail("attribute padding is %q", v.padding)
	}
	v.size, v.stride = depths(b, "ksizes"), depths(b, "strides")
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 5 {
			return c.Invalid("volumes must have the shape [n,depth,height,width,channels], not %s", exec.ShapeString(x.Shape))
		}
		var e [3]extent
		for i := range e {
			var err error
			if e[i], err = v.extent(x.Shape[i+1], v.size[i], v.stride[i], 1, i); err != nil {
				return c.Invalid("dimension %d: %v", i+1, err)
			}
		}
		channels := x.Shape[4]
		c.CheckSize([]int{v.size[0], v.size[1], v.size[2], channels}, 1)
		d := c.Out(0, x.DType, x.Shape[0], e[0].out, e[1].out, e[2].out, v.size[0]*v.size[1]*v.size[2]*channels)
		elem.Zero(d)
		for n := range x.Shape[0] {
			v.patches(e, func(out, from, tap int) {
				volume := e[0].in * e[1].in * e[2].in
				positions := e[0].out * e[1].out * e[2].out
				exec.CopyElems(d, (n*positions+out)*d.Shape[4]+tap*channels, x, (n*volume+from)*channels, channels)
			})
		}
		return nil
	}, nil
}

// patches calls f with each position of the window, the voxel under each of its taps within
// the volume, and the tap.
func (v *volumes) patches(e [3]extent, f func(out, from, tap int)) {
	for out := range e[0].out * e[1].out * e[2].out {
		at := [3]int{out / e[2].out / e[1].out, out / e[2].out % e[1].out, out % e[2].out}
		var lo, hi, base [3]int
		for i := range at {
			lo[i], hi[i], base[i] = e[i].span(at[i])
		}
		for z := lo[0]; z < hi[0]; z++ {
			for y := lo[1]; y < hi[1]; y++ {
				for x := lo[2]; x < hi[2]; x++ {
					from := ((base[0]+z)*e[1].in+base[1]+y)*e[2].in + base[2] + x
					f(out, from, (z*v.size[1]+y)*v.size[2]+x)
				}
			}
		}
	}
}
