import { create, createFileRegistry } from '@bufbuild/protobuf';
import { serviceDesc } from '@bufbuild/protobuf/codegenv2';
import {
  file_google_protobuf_wrappers,
  FileDescriptorProtoSchema,
  type StringValueSchema,
} from '@bufbuild/protobuf/wkt';

const wrappers = file_google_protobuf_wrappers;
const text = { inputType: '.google.protobuf.StringValue', outputType: '.google.protobuf.StringValue' };
const method = [
  { name: 'Unary', ...text },
  { name: 'Down', ...text, serverStreaming: true },
  { name: 'Both', ...text, clientStreaming: true, serverStreaming: true },
  { name: 'Fail', ...text },
];
const file = create(FileDescriptorProtoSchema, {
  name: 'demo.proto',
  package: 'demo',
  syntax: 'proto3',
  dependency: [wrappers.proto.name],
  service: [{ name: 'Connect', method }],
});

const found = createFileRegistry(file, () => wrappers).getFile(file.name);
if (found === undefined) throw new Error(`there is no ${file.name}`);

interface Call<Kind> {
  readonly methodKind: Kind;
  readonly input: typeof StringValueSchema;
  readonly output: typeof StringValueSchema;
}

/** A service whose methods take and return a text. */
export const CONNECT_ECHO = serviceDesc<{
  unary: Call<'unary'>;
  down: Call<'server_streaming'>;
  both: Call<'bidi_streaming'>;
  fail: Call<'unary'>;
}>(found, 0);
