module ephemera

go 1.26.0

require golang.org/x/exp v0.0.0-20250305212735-054e65f0b394
