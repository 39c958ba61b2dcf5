//go:build cgo

package main

import "testing"

func TestTable(t *testing.T) {
	var of table
	a, b := of.add("a"), of.add("b")
	if v, err := get[string](&of, a); v != "a" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := of.take(a); v != "a" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := get[int](&of, b); err == nil {
		t.Error("a handle of another kind was taken")
	}
	for _, handle := range []int64{a, 0, -1, b + 1} {
		if _, err := get[string](&of, handle); err == nil {
			t.Errorf("handle %d is there", handle)
		}
	}
	if _, err := of.take(a); err == nil {
		t.Error("a handle was taken twice")
	}
	if c := of.add("c"); c == a || c == b {
		t.Errorf("handle %d is used twice", c)
	}
}
