//go:build !(linux && amd64)

package amx

import "errors"

func ask() error { return errors.New("AMX is used on Linux alone") }
