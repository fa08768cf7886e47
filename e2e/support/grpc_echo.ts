import type { MethodDefinition } from '@grpc/grpc-js';

const asBytes = (bytes: Buffer): Buffer => bytes;

function method(name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/demo.Echo/${name}`,
    requestStream,
    responseStream,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  };
}

/** A service with a method of every form, whose messages are any bytes. */
export const ECHO = {
  unary: method('Unary', false, false),
  down: method('Down', false, true),
  up: method('Up', true, false),
  both: method('Both', true, true),
  fail: method('Fail', false, false),
  wait: method('Wait', false, false),
};
