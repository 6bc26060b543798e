package web

import (
	"net/http"
	"strconv"
	"time"

	"gdb/internal/mem"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts what the server does.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  prometheus.Counter
	clients  prometheus.Gauge
}

// secondsBounds are the bounds of the histogram of times.
var secondsBounds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}

func newMetrics(s *Service) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gdb_http_requests_total",
			Help: "Requests that were answered."}, []string{"endpoint", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gdb_http_request_seconds", Help: "Seconds from a header to its answer.",
			Buckets: secondsBounds}, []string{"endpoint"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gdb_http_connections_refused_total",
			Help: "Connections that were refused because there were too many."}),
		clients: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gdb_http_connections",
			Help: "Connections that are open."})}
	m.registry.MustRegister(m.requests, m.seconds, m.refused, m.clients,
		gauge("gdb_memory_limit_bytes", "Bytes that the budget allows.",
			func() float64 { return float64(s.budget.Limit()) }),
		gauge("gdb_memory_used_bytes", "Bytes that the budget counts.",
			func() float64 { return float64(s.budget.Used()) }),
		gauge("gdb_process_resident_bytes", "Resident memory of the process.",
			func() float64 { rss, _ := mem.RSS(); return float64(rss) }),
		counter("gdb_device_read_bytes_total", "Bytes that were read from the store.",
			func() float64 { return float64(s.opt.Device.Stats().Bytes) }))
	return m
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

// answered counts a request.
func (m *metrics) answered(endpoint string, code int, begun time.Time) {
	m.requests.WithLabelValues(endpoint, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(endpoint).Observe(time.Since(begun).Seconds())
}

func metricsEndpoint() *endpoint {
	return &endpoint{method: http.MethodGet, path: "/metrics", name: "metrics",
		about: "Counters for Prometheus, as text.",
		plain: func(s *Service) http.Handler {
			return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
		}}
}
