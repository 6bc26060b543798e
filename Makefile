# go test ./... is the only command a contributor has to know; these are shorthands.
build:
	CGO_ENABLED=0 go build -o bin/gdb ./cmd/gdb
# The declarations in internal/cuda/include stand for NVIDIA's headers: docs/cuda.md.
cuda:
	CGO_ENABLED=1 CGO_CFLAGS="-I$(CURDIR)/internal/cuda/include $(CGO_CFLAGS)" \
		go build -tags cuda -o bin/gdb ./cmd/gdb
test:
	go test ./...
race:
	go test -race -short ./blockdev/... ./kv/... ./sample/... ./train/...
invariants:
	go test -tags invariants ./...
lint:
	go vet ./... && go tool staticcheck ./... && go test ./internal/lint
fuzz:
	./internal/lint/fuzz.sh 20s
cover:
	go test -coverprofile=bin/cover.out ./... && go tool cover -func=bin/cover.out | tail -1
bench:
	go test -run '^$$' -bench . ./...
fmt:
	gofmt -w .
clean:
	rm -rf bin

.PHONY: build cuda test race invariants lint fuzz cover bench fmt clean
