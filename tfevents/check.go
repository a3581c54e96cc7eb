package tfevents

import (
	"errors"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// checkEvent refuses what a reader could not decode. With one string that is not UTF-8, TensorBoard
// would lose the rest of the file, and the Python loader everything that it has yet to load.
func checkEvent(e *tfpb.Event) error {
	if e == nil {
		return errors.New("tfevents: nil event")
	}
	//lint:ignore SA1019 old programs write log messages still
	logMessage := e.GetLogMessage().GetMessage()
	for _, s := range []string{
		e.GetFileVersion(), e.GetSourceMetadata().GetWriter(), logMessage,
		e.GetSessionLog().GetCheckpointPath(), e.GetSessionLog().GetMsg(), e.GetTaggedRunMetadata().GetTag(),
	} {
		if err := tfproto.CheckString(s); err != nil {
			return err
		}
	}
	return checkSummary(e.GetSummary())
}

func checkSummary(s *tfpb.Summary) error {
	for _, v := range s.GetValue() {
		m := v.GetMetadata()
		for _, s := range []string{
			v.GetTag(), v.GetNodeName(), m.GetPluginData().GetPluginName(), m.GetDisplayName(),
			m.GetSummaryDescription(), v.GetAudio().GetContentType(),
		} {
			if err := tfproto.CheckString(s); err != nil {
				return err
			}
		}
	}
	return nil
}
