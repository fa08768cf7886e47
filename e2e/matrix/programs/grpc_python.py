# Python's grpcio, configured by the environment alone: the calls and the output of clients/grpc_client.mjs, without its
# call that waits for a deadline unless there is a third argument. Its arguments: a target, the messages of the last stream.
import json
import sys

import grpc

channel = grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials())
messages = [f"message {index}".encode() for index in range(int(sys.argv[2]))]


def path(name):
    return f"/demo.Echo/{name}"


def entry(metadata, name):
    return dict(metadata)[name]


reply, call = channel.unary_unary(path("Unary")).with_call(b"a", metadata=[("x-note", "from the agent")])
unary = {
    "reply": reply.decode(),
    "head": entry(call.initial_metadata(), "x-head"),
    "tail": entry(call.trailing_metadata(), "x-tail"),
}
stream = channel.unary_stream(path("Down"))(b"3")
down = [text.decode() for text in stream]
up = channel.stream_unary(path("Up"))(iter([b"a", b"b", b"c"]))
both = channel.stream_stream(path("Both"))(iter(messages))
if list(both) != messages:
    raise SystemExit("the messages of the stream came back otherwise")


def failure(name, timeout):
    try:
        channel.unary_unary(path(name))(b"x", timeout=timeout)
    except grpc.RpcError as error:
        return {"code": error.code().value[0], "details": error.details()}
    raise SystemExit(f"{name} did not fail")


fail = failure("Fail", 60)
wait = failure("Wait", 0.3)
print(
    json.dumps(
        {
            "unary": unary,
            "down": [stream.code().value[0], *down],
            "up": {"reply": up.decode()},
            "both": [both.code().value[0], len(messages)],
            "fail": fail,
            "wait": wait,
        }
    )
)
