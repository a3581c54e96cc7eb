// Package tbpb holds Go types for the protocol messages of TensorBoard's own
// plugins. Most of them appear in events files, encoded, as
// SummaryMetadata.plugin_data.content of the first summary of a tag; ProjectorConfig
// is a text file in the log directory.
//
// They are registered as trainerd.tb.* for the reason that package tfpb gives,
// and regenerated with it.
package tbpb
