import { expect, test } from 'vitest';

import { refusal } from '../../model/refusal.ts';
import { grpcRefusal, grpcType } from './grpc_reply.ts';

test.each([
  ['application/grpc', 'application/grpc'],
  ['Application/GRPC+proto; charset=utf-8', 'application/grpc+proto'],
  ['application/grpc-web-text+proto', 'application/grpc-web-text+proto'],
  ['application/grpcx', null],
  ['application/grpc+', null],
  ['text/application/grpc', null],
  ['application/json', null],
  [undefined, null],
])('the content type %j is of the gRPC call %j', (contentType, expected) => {
  expect(grpcType(contentType)).toBe(expected);
});

test('a refusal is a status of gRPC, and its message starts with the code', () => {
  expect(grpcRefusal('application/grpc', refusal('effect_not_allowed', 'only GET'))).toEqual([
    ':status',
    '200',
    'content-type',
    'application/grpc',
    'grpc-status',
    '7',
    'grpc-message',
    'effect_not_allowed: only GET',
  ]);
});

test('a message is percent-encoded', () => {
  expect(grpcRefusal('application/grpc', refusal('upstream_unreachable', '100% a\nb é')).at(-1)).toBe(
    'upstream_unreachable: 100%25 a%0Ab %C3%A9',
  );
});
