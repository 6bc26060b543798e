package trace

import (
	"context"
	"testing"
)

func TestCounts(t *testing.T) {
	s := &Span{Name: "hop 1"}
	ctx := With(context.Background(), s)
	From(ctx).Read(2, 8192)
	From(ctx).Hit(3)
	From(ctx).Emit(5, 20)
	inner, opened := Opening(ctx)
	From(inner).Read(1, 4096)
	opened()
	got := s.Counts()
	if got.OpenedTime <= 0 {
		t.Error("opening took no time")
	}
	got.OpenedTime = 0
	want := Counts{Out: 5, Cached: 3, Read: 2, Bytes: 8192, Used: 20, Opened: 1, OpenedBytes: 4096}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if sum := got.Add(want); sum.Read != 4 || sum.Opened != 2 || sum.Used != 40 {
		t.Errorf("the sum is %+v", sum)
	}
}

// TestNoSpan holds that code outside a statement counts nothing and does not fail.
func TestNoSpan(t *testing.T) {
	at := From(context.Background())
	at.Read(1, 1)
	at.Hit(1)
	at.Emit(1, 1)
	inner, opened := Opening(context.Background())
	From(inner).Read(1, 1)
	opened()
	if at.Counts() != (Counts{}) {
		t.Errorf("counts %+v", at.Counts())
	}
}

// TestWatch holds that the times of spans do not overlap.
func TestWatch(t *testing.T) {
	var w Watch
	outer, inner := &Span{}, &Span{}
	if w.Switch(outer) != nil {
		t.Error("something ran before")
	}
	back := w.Switch(inner)
	if back != outer {
		t.Error("the outer span is not what ran")
	}
	stopped := outer.Counts().Time
	for range 1000 {
		w.Switch(inner)
	}
	if outer.Counts().Time != stopped || inner.Counts().Time == 0 {
		t.Errorf("outer %v, inner %v", outer.Counts().Time, inner.Counts().Time)
	}
	w.Switch(back)
	w.Switch(nil)
	if outer.Counts().Time < stopped {
		t.Error("time went back")
	}
}
