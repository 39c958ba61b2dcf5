//go:build cgo

package main

import _ "ephemera/python/native" // what Python calls
