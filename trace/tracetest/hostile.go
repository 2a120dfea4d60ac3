package tracetest

import (
	"reflect"
	"slices"
	"strings"

	"gpuscope/trace"
)

// HostileText is a text with terminal commands and characters that break a line. It clears the screen,
// writes the clipboard (OSC 52), sets a colour, breaks the line, and hides and reverses letters.
const HostileText = "\x1b[2J\x1b]52;c;aGk=\x07\u009b31m\x1b[31mred\n\r\tx\u202eltr\u2066\u200b\ufeff\x00\x7f\xff"

// fixedWords lists the fields for which Check accepts only certain words or a fixed format.
var fixedWords = []string{
	"Trace.Schema", "Value.Kind", "Value.Role", "Step.Phase", "Step.Timing", "Resize.Order", "Plan.Params",
	"Wait.Kind", "Dispatch.Joined",
}

// Hostile appends HostileText to every free text of a trace: names, texts, reasons, keys, the device and
// the model.
func Hostile(t *trace.Trace) *trace.Trace {
	spoil(reflect.ValueOf(t))
	return t
}

func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !slices.Contains(fixedWords, v.Type().Name()+"."+f.Name) {
				spoil(v.Field(i))
			}
		}
	case reflect.Map: // appending to every key keeps lookups by key working
		for _, key := range v.MapKeys() {
			if !strings.HasSuffix(key.String(), HostileText) {
				v.SetMapIndex(reflect.ValueOf(key.String()+HostileText).Convert(key.Type()), v.MapIndex(key))
			}
		}
	case reflect.String:
		if v.CanSet() && !strings.HasSuffix(v.String(), HostileText) {
			v.SetString(v.String() + HostileText)
		}
	}
}
