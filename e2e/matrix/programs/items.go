// Go's net/http with its default client. Its argument: the URL of the items.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	url := os.Args[1]
	got, err := http.Get(url + "?page=1")
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, got.Body)
	got.Body.Close()
	made, err := http.Post(url, "application/json", strings.NewReader(`{"title":"a"}`))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(made.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(got.StatusCode, made.StatusCode, string(text))
}
