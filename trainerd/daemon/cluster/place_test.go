package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// TestPlace holds the devices against those that replica_device_setter gives.
func TestPlace(t *testing.T) {
	loc := func(v string) map[string]*tfpb.AttrValue {
		return map[string]*tfpb.AttrValue{"_class": attr.Strings("loc:@" + v)}
	}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "x", Op: "Placeholder"},
		{Name: "w/init", Op: "Const", Attr: loc("w")},
		{Name: "w", Op: "VariableV2"},
		{Name: "w/Assign", Op: "Assign", Input: []string{"w", "w/init"}},
		{Name: "w/read", Op: "Identity", Input: []string{"w"}},
		{Name: "b", Op: "VarHandleOp"},
		{Name: "b/read", Op: "ReadVariableOp", Input: []string{"b"}},
		{Name: "y", Op: "Add", Input: []string{"w/read", "x"}},
		{Name: "beta1_power", Op: "VariableV2", Attr: loc("b")},
		{Name: "w/Adam", Op: "VariableV2"},
		{Name: "global_step", Op: "VariableV2"},
		{Name: "train/w", Op: "ApplyAdam", Input: []string{"w", "w/Adam", "y"}},
		{Name: "fixed", Op: "VariableV2", Device: "/job:ps/task:7"},
		{Name: "fixed/read", Op: "Identity", Input: []string{"fixed"}},
		{Name: "after", Op: "NoOp", Input: []string{"^w"}},
		{Name: "save", Op: "SaveV2", Input: []string{"w", "b/read"}},
	}}
	const ps0, ps1, worker = "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:3"
	want := map[string]string{
		"x": worker, "w/init": ps0, "w": ps0, "w/Assign": ps0, "w/read": ps0, "b": ps1, "b/read": ps1, "y": worker,
		"beta1_power": ps1, "w/Adam": ps0, "global_step": ps0, "train/w": ps0,
		"fixed": "/job:ps/task:7", "fixed/read": "/job:ps/task:7", "after": worker, "save": worker,
	}
	got := map[string]string{}
	for _, n := range place(def, placement{PSTasks: 2, WorkerDevice: worker}).GetNode() {
		got[n.GetName()] = n.GetDevice()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if d := def.GetNode()[0].GetDevice(); d != "" {
		t.Errorf("the graph that was given has the device %q now", d)
	}
	for _, n := range place(def, placement{}).GetNode() {
		if n.GetName() != "fixed" && n.GetName() != "fixed/read" && n.GetDevice() != "/job:worker/task:0" {
			t.Errorf("without parameter servers %s is on %q", n.GetName(), n.GetDevice())
		}
	}
}
