// Capi is the shared library of the Python package; package native is what it holds.
//
//	go build -buildmode=c-shared -o libephemera.so ./python/capi
package main

import _ "ephemera/python/native"

func main() {}
