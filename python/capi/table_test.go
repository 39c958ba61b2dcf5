//go:build cgo

package main

import "testing"

func TestTable(t *testing.T) {
	var of table[string]
	a, b := of.add("a"), of.add("b")
	if v, err := of.get(a); v != "a" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := of.take(a); v != "a" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	for _, handle := range []int64{a, 0, -1, b + 1} {
		if _, err := of.get(handle); err == nil {
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
