package config

import (
	"fmt"
	"reflect"
)

// Key is a key of the config, for the completion of command lines.
type Key struct {
	Name string // full, as in train.steps
	Form string // of its value, with the default if there is one
	// Values are the values that it may have, if they are few.
	Values []string
}

// Keys returns all keys, in the order of doc/config.md.
func Keys() []Key {
	root := reflect.ValueOf(Default()).Elem()
	values := choices()
	var keys []Key
	for _, name := range allKeys("", root) {
		field := fieldAt(root, name)
		if isTableField(field) {
			continue
		}
		form := formOf(field.Kind())
		if field.Kind() == reflect.Bool {
			values[name] = []string{"true", "false"}
		}
		if !field.IsZero() && field.Kind() != reflect.Struct {
			form += fmt.Sprintf(", %v by default", field.Interface())
		}
		keys = append(keys, Key{name, form, values[name]})
	}
	return keys
}

// fieldAt returns the field of a known key.
func fieldAt(s reflect.Value, name string) reflect.Value {
	table, key := splitKey(name)
	if table != "" {
		s = fieldAt(s, table)
	}
	field, _ := fieldOf(s, key)
	return field
}

func formOf(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a table"
	case reflect.String:
		return "a text"
	}
	return "a value"
}
