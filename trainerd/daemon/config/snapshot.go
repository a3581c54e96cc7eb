package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Snapshot returns the resolved config as TOML, with the values of flags and
// without defaults. A job started with it trains in the same way.
func (c *Config) Snapshot() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The config of the newest run in this folder, as it was resolved")
	if c.file != "" {
		fmt.Fprintf(&b, " from %s", oneLine(Absolute(c.file)))
	}
	b.WriteString(".\n")
	for _, flag := range c.flags() {
		fmt.Fprintf(&b, "# changed by %s\n", oneLine(flag))
	}
	whole := *c
	whole.Train.EvalSteps = c.defaults().Train.EvalSteps // Eval.Steps has it, by its newer name
	for _, p := range whole.paths() {
		if *p.value != "" && !p.isName() {
			*p.value = Absolute(*p.value)
		}
	}
	err := writeTable(&b, "", reflect.ValueOf(&whole).Elem(), reflect.ValueOf(c.defaults()).Elem())
	return bytes.ToValidUTF8(b.Bytes(), []byte(string(utf8.RuneError))), err // a path may be any bytes
}

// flags returns the flags that have changed the config.
func (c *Config) flags() []string {
	set := make(map[string]bool)
	for _, from := range c.origins {
		if from.flag != "" {
			set[from.flag] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// writeTable writes the keys of a table whose values are not the default's.
func writeTable(b *bytes.Buffer, path string, table, byDefault reflect.Value) error {
	if path != "" {
		var inner bytes.Buffer
		if err := writeKeys(&inner, table, byDefault); err != nil || inner.Len() == 0 {
			return err
		}
		fmt.Fprintf(b, "\n[%s]\n%s", path, inner.Bytes())
		return nil
	}
	if err := writeKeys(b, table, byDefault); err != nil {
		return err
	}
	for i, key := range keysOf(table) {
		if isTableField(table.Field(i)) {
			if err := writeTable(b, key, table.Field(i), byDefault.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeKeys(b *bytes.Buffer, table, byDefault reflect.Value) error {
	for i, key := range keysOf(table) {
		field := table.Field(i)
		if isTableField(field) || reflect.DeepEqual(field.Interface(), byDefault.Field(i).Interface()) {
			continue
		}
		value := field.Interface()
		if column, ok := value.(Column); ok {
			value = any(column.Index)
			if column.Name != "" {
				value = column.Name
			}
		}
		if text, ok, err := valueText(value); err != nil {
			return fmt.Errorf("writing %s: %w", key, err)
		} else if ok {
			fmt.Fprintf(b, "%s = %s\n", key, text)
			continue
		}
		if err := toml.NewEncoder(b).Encode(map[string]any{key: value}); err != nil {
			return fmt.Errorf("writing %s: %w", key, err)
		}
	}
	return nil
}

// valueText returns a value that is written otherwise than by its type.
func valueText(value any) (text string, ok bool, err error) {
	if c, is := value.(ClassWeights); is {
		text, err = c.tomlValue()
		return text, true, err
	}
	if reflect.ValueOf(value).Kind() == reflect.Map {
		text, err = inlineTable(value)
		return text, true, err
	}
	return "", false, nil
}

// inlineTable returns a map as TOML has it on one line.
func inlineTable(m any) (string, error) {
	var items []string
	for it := reflect.ValueOf(m).MapRange(); it.Next(); {
		var value bytes.Buffer
		if err := toml.NewEncoder(&value).Encode(map[string]any{"v": it.Value().Interface()}); err != nil {
			return "", err
		}
		_, text, _ := strings.Cut(strings.TrimSpace(value.String()), " = ")
		items = append(items, tomlString(it.Key().String())+" = "+text)
	}
	slices.Sort(items)
	return "{ " + strings.Join(items, ", ") + " }", nil
}
