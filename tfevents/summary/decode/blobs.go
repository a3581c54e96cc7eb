package decode

import (
	"strconv"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Blobs returns the contents of a value of a series of blob sequences, as
// TensorBoard's pages need them: the width, the height and the encoded images
// of an image, the clips of audio without their labels, a graph. It returns nil
// for any other value.
func Blobs(v *tfpb.Summary_Value) [][]byte {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_Image:
		return [][]byte{
			strconv.AppendInt(nil, int64(x.Image.GetWidth()), 10),
			strconv.AppendInt(nil, int64(x.Image.GetHeight()), 10),
			x.Image.GetEncodedImageString(),
		}
	case *tfpb.Summary_Value_Audio:
		return [][]byte{x.Audio.GetEncodedAudioString()}
	case *tfpb.Summary_Value_Tensor:
		return TensorBlobs(x.Tensor)
	}
	return nil
}

// TensorBlobs does the same for the tensor of such a value.
func TensorBlobs(t *tfpb.TensorProto) [][]byte {
	all := t.GetStringVal()
	if t.GetDtype() != tfpb.DataType_DT_STRING {
		return nil
	}
	dims := t.GetTensorShape().GetDim()
	if len(dims) != 2 || dims[1].GetSize() != 2 {
		return all
	}
	clips := make([][]byte, 0, len(all)/2)
	for i := 0; i+1 < len(all); i += 2 {
		clips = append(clips, all[i])
	}
	return clips
}
