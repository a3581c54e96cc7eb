package hook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// merger collects what a call and its hooks request.
type merger struct {
	RunArgs
	fed map[string]string // by tensor: who feeds it; nil while no hook feeds any
}

func newMerger(args RunArgs) *merger {
	m := &merger{RunArgs: args}
	m.Fetches, m.Targets = slices.Clip(args.Fetches), slices.Clip(args.Targets)
	return m
}

// add adds what a hook requests. No tensor may be fed twice.
func (m *merger) add(hook string, args *RunArgs) error {
	if len(args.Feeds) > 0 {
		m.ownFeeds(len(args.Feeds))
	}
	for name, value := range args.Feeds {
		tensor := canonicalTensor(name)
		if who, twice := m.fed[tensor]; twice {
			return fmt.Errorf("same tensor is fed twice: %s, by %s and by %s", tensor, who, hook)
		}
		m.fed[tensor], m.Feeds[name] = hook, value
	}
	m.Fetches = append(m.Fetches, args.Fetches...)
	m.Targets = append(m.Targets, args.Targets...)
	m.Options = mergeOptions(m.Options, args.Options)
	return nil
}

// ownFeeds makes Feeds a map that is not the caller's, with room for more.
func (m *merger) ownFeeds(more int) {
	if m.fed != nil {
		return
	}
	n := len(m.Feeds) + more
	feeds := make(map[string]*ckptfmt.Tensor, n)
	m.fed = make(map[string]string, n)
	for name, value := range m.Feeds {
		feeds[name] = value
		m.fed[canonicalTensor(name)] = "the training"
	}
	m.Feeds = feeds
}

// canonicalTensor returns the name of a tensor with its output.
func canonicalTensor(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return name + ":0"
}

// mergeOptions returns options that satisfy both; nil means no options.
func mergeOptions(a, b *tfpb.RunOptions) *tfpb.RunOptions {
	switch {
	case b == nil:
		return a
	case a == nil:
		return proto.CloneOf(b)
	}
	m := proto.CloneOf(a)
	m.TraceLevel = max(a.GetTraceLevel(), b.GetTraceLevel())
	m.TimeoutInMs = max(a.GetTimeoutInMs(), b.GetTimeoutInMs())
	m.InterOpThreadPool = max(a.GetInterOpThreadPool(), b.GetInterOpThreadPool())
	m.OutputPartitionGraphs = a.GetOutputPartitionGraphs() || b.GetOutputPartitionGraphs()
	m.ReportTensorAllocationsUponOom = a.GetReportTensorAllocationsUponOom() || b.GetReportTensorAllocationsUponOom()
	if watches := b.GetDebugOptions().GetDebugTensorWatchOpts(); len(watches) > 0 {
		if m.DebugOptions == nil {
			m.DebugOptions = &tfpb.DebugOptions{}
		}
		m.DebugOptions.DebugTensorWatchOpts = append(m.DebugOptions.DebugTensorWatchOpts, proto.CloneOf(b.GetDebugOptions()).DebugTensorWatchOpts...)
	}
	return m
}
