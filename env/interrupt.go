package env

import "context"

// Interrupt gives what embeds it the method Until, for loops over very many
// sources. The zero Interrupt never ends one.
type Interrupt struct {
	ctx   context.Context
	ended bool // a loop was
}

// Until has the loops end when the context is done.
func (x *Interrupt) Until(ctx context.Context) { x.ctx = ctx }

// look is how many sources lie between two looks at the context; at 300 ns a
// source, 5 ms.
const look = 1 << 14

// At reports, at every 16 384th source, whether the loop is to end. It costs
// short loops nothing.
func (x *Interrupt) At(i int) bool { return i%look == look-1 && x.Err() != nil }

// Err returns the context's error when it is done.
func (x *Interrupt) Err() error {
	if x.ctx == nil {
		return nil
	}
	err := x.ctx.Err()
	x.ended = x.ended || err != nil
	return err
}
