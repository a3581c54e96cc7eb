package summary

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// Mesh is a 3D mesh, or a point cloud if it has no faces.
type Mesh struct {
	Vertices [][3]float32
	Faces    [][3]int32 // indices of vertices
	Colors   [][3]uint8 // of the vertices, RGB
	// Config is JSON that sets up the scene: camera, lights, material.
	// "" means "{}".
	Config string
}

// Values returns the mesh for TensorBoard's mesh plugin, which shows it under
// tag: one value each for the vertices, the faces and the colours, if any.
func (m *Mesh) Values(tag string) ([]*tfpb.Summary_Value, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("tfevents: mesh %q: %w", tag, err)
	}
	components := uint32(1) << tbpb.MeshPluginData_VERTEX
	if len(m.Faces) > 0 {
		components |= 1 << tbpb.MeshPluginData_FACE
	}
	if len(m.Colors) > 0 {
		components |= 1 << tbpb.MeshPluginData_COLOR
	}
	values := []*tfpb.Summary_Value{m.value(tag, tbpb.MeshPluginData_VERTEX, components, m.vertexTensor())}
	if len(m.Faces) > 0 {
		values = append(values, m.value(tag, tbpb.MeshPluginData_FACE, components, m.faceTensor()))
	}
	if len(m.Colors) > 0 {
		values = append(values, m.value(tag, tbpb.MeshPluginData_COLOR, components, m.colorTensor()))
	}
	return values, nil
}

func (m *Mesh) check() error {
	if len(m.Vertices) == 0 {
		return errors.New("no vertices")
	}
	for i, f := range m.Faces {
		for _, v := range f {
			if v < 0 || int(v) >= len(m.Vertices) {
				return fmt.Errorf("face %d names vertex %d of %d", i, v, len(m.Vertices))
			}
		}
	}
	if len(m.Colors) > 0 && len(m.Colors) != len(m.Vertices) {
		return fmt.Errorf("%d colours for %d vertices", len(m.Colors), len(m.Vertices))
	}
	if m.Config != "" && !json.Valid([]byte(m.Config)) {
		return fmt.Errorf("configuration is not JSON: %s", m.Config)
	}
	return nil
}

func (m *Mesh) value(tag string, kind tbpb.MeshPluginData_ContentType, components uint32, t *tfpb.TensorProto) *tfpb.Summary_Value {
	config := m.Config
	if config == "" {
		config = "{}"
	}
	data := &tbpb.MeshPluginData{Name: tag, ContentType: kind, JsonConfig: config, Components: components}
	for _, d := range t.GetTensorShape().GetDim() {
		data.Shape = append(data.Shape, int32(d.GetSize()))
	}
	return PluginTensor(fmt.Sprintf("%s_%s", tag, kind), PluginMesh, tfproto.Marshal(data), t)
}

func (m *Mesh) vertexTensor() *tfpb.TensorProto {
	flat := make([]float32, 0, 3*len(m.Vertices))
	for _, v := range m.Vertices {
		flat = append(flat, v[:]...)
	}
	return floatTensor(shapeProto(1, int64(len(m.Vertices)), 3), flat)
}

func (m *Mesh) faceTensor() *tfpb.TensorProto {
	var content []byte
	for _, f := range m.Faces {
		for _, v := range f {
			content = binary.LittleEndian.AppendUint32(content, uint32(v))
		}
	}
	return &tfpb.TensorProto{
		Dtype: tfpb.DataType_DT_INT32, TensorShape: shapeProto(1, int64(len(m.Faces)), 3), TensorContent: content,
	}
}

func (m *Mesh) colorTensor() *tfpb.TensorProto {
	var content []byte
	for _, c := range m.Colors {
		content = append(content, c[:]...)
	}
	return &tfpb.TensorProto{
		Dtype: tfpb.DataType_DT_UINT8, TensorShape: shapeProto(1, int64(len(m.Colors)), 3), TensorContent: content,
	}
}
