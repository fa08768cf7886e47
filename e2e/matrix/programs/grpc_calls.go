// gRPC for Go, configured by the environment alone: the calls and the output of clients/grpc_client.mjs. Its arguments: a
// target, the messages of the last stream.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Messages are any bytes.
type bytesCodec struct{}

func (bytesCodec) Marshal(v interface{}) ([]byte, error)      { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v interface{}) error { *v.(*[]byte) = data; return nil }
func (bytesCodec) Name() string                               { return "proto" }

type object = map[string]interface{}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func send(stream grpc.ClientStream, text string) {
	message := []byte(text)
	check(stream.SendMsg(&message))
}

func receive(stream grpc.ClientStream) (string, error) {
	var message []byte
	err := stream.RecvMsg(&message)
	return string(message), err
}

func main() {
	// The environment names the roots.
	connection, err := grpc.Dial(
		os.Args[1],
		grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(nil, "")),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})),
	)
	check(err)
	messages, err := strconv.Atoi(os.Args[2])
	check(err)
	background := context.Background()
	call := func(ctx context.Context, name, text string, options ...grpc.CallOption) (string, error) {
		message, reply := []byte(text), []byte{}
		err := connection.Invoke(ctx, "/demo.Echo/"+name, &message, &reply, options...)
		return string(reply), err
	}
	open := func(name string, up, down bool) grpc.ClientStream {
		stream, err := connection.NewStream(background, &grpc.StreamDesc{ClientStreams: up, ServerStreams: down}, "/demo.Echo/"+name)
		check(err)
		return stream
	}
	failure := func(ctx context.Context, name string) object {
		_, err := call(ctx, name, "x")
		return object{"code": status.Code(err), "details": status.Convert(err).Message()}
	}

	var head, tail metadata.MD
	noted := metadata.AppendToOutgoingContext(background, "x-note", "from the agent")
	reply, err := call(noted, "Unary", "a", grpc.Header(&head), grpc.Trailer(&tail))
	check(err)
	unary := object{"reply": reply, "head": head.Get("x-head")[0], "tail": tail.Get("x-tail")[0]}

	stream := open("Down", false, true)
	send(stream, "3")
	check(stream.CloseSend())
	down := []interface{}{0}
	for text, err := receive(stream); err != io.EOF; text, err = receive(stream) {
		check(err)
		down = append(down, text)
	}

	stream = open("Up", true, false)
	for _, text := range []string{"a", "b", "c"} {
		send(stream, text)
	}
	check(stream.CloseSend())
	up, err := receive(stream)
	check(err)

	stream = open("Both", true, true)
	for index := 0; index < messages; index++ {
		text := fmt.Sprint("message ", index)
		send(stream, text)
		echo, err := receive(stream)
		check(err)
		if echo != text {
			panic("out of order: " + echo)
		}
	}
	check(stream.CloseSend())
	if _, err := receive(stream); err != io.EOF {
		check(err)
	}

	fail := failure(background, "Fail")
	deadline, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	wait := failure(deadline, "Wait")
	check(json.NewEncoder(os.Stdout).Encode(object{
		"unary": unary, "down": down, "up": object{"reply": up}, "both": []int{0, messages}, "fail": fail, "wait": wait,
	}))
}
