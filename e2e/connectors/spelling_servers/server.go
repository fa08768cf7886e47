package main

import (
	"fmt"
	"net"
	"net/http"
)

func main() {
	answer := func(pattern, name string) {
		http.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name) })
	}
	answer("/v1/refunds", "refund")
	answer("/v1/things:batchDelete", "batch")
	answer("/users/@me", "me")
	answer("/v1/", "thing")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
