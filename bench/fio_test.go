package bench

import "testing"

func TestParse(t *testing.T) {
	const good = `fio: a warning
{"jobs":[{"error":0,"usr_cpu":10,"sys_cpu":30,
"read":{"iops":1000,"total_ios":2000,"runtime":2000}}]}`
	r, err := parse([]byte(good))
	if err != nil || r.Reads != 1000 || r.CPUMicros != 400 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, bad := range []string{"", "{", `{"jobs":[]}`, `{"jobs":[{"error":5}]}`} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
