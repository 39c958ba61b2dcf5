module ephemera

go 1.26.0

require (
	github.com/pelletier/go-toml/v2 v2.4.3
	golang.org/x/exp v0.0.0-20250305212735-054e65f0b394
	gonum.org/v1/gonum v0.17.0
)
