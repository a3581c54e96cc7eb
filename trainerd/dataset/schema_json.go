package dataset

import (
	"encoding/json"
	"fmt"
)

// plainSchema is a Schema without its methods.
type plainSchema Schema

// schemaJSON is a Schema as it is stored. Images have features by the thousand,
// all alike: they are a count.
type schemaJSON struct {
	plainSchema
	Width int  `json:"width,omitempty"`
	Kind  Kind `json:"kind,omitempty"`
}

// MarshalJSON writes features that are all alike as their number.
func (s Schema) MarshalJSON() ([]byte, error) {
	out := schemaJSON{plainSchema: plainSchema(s)}
	if s.uniform() {
		out.Width, out.Kind, out.Features = len(s.Features), s.Features[0].Kind, nil
	}
	return json.Marshal(out)
}

// uniform reports whether the features differ in nothing but their places, which
// are their own numbers.
func (s *Schema) uniform() bool {
	for i, f := range s.Features {
		if f.Name != "" || f.Layout != "" || f.Parts != nil || f.Unit != "" || f.NA != nil || f.Vocabulary != nil || f.Column != i || f.Kind != s.Features[0].Kind {
			return false
		}
	}
	return len(s.Features) > 0
}

// maxFeatures bounds the width that a stored schema may claim.
const maxFeatures = 1 << 26

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Schema) UnmarshalJSON(text []byte) error {
	var in schemaJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*s = Schema(in.plainSchema)
	if in.Width < 0 || in.Width > maxFeatures {
		return fmt.Errorf("schema: %d features; want 0 to %d", in.Width, maxFeatures)
	}
	for _, f := range s.Features {
		if f.Kind == KindText && (f.Length < 1 || f.Length > maxTextLength) {
			return fmt.Errorf("schema: a text of %d words; want 1 to %d", f.Length, maxTextLength)
		}
	}
	if in.Width > 0 {
		s.Features = make([]Feature, in.Width)
		for i := range s.Features {
			s.Features[i] = Feature{Kind: in.Kind, Column: i}
		}
	}
	return nil
}
