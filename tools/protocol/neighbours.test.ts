import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { channelSchemas, type ChannelSchemas } from './channel_schemas.ts';
import { findUnread } from './compare_schemas.ts';
import { RECORDED } from './record.ts';

// The channel of this version against that of the previous one (decision 0133), in both directions.

const schemas = z.object({ requests: z.record(z.string(), z.unknown()), replies: z.record(z.string(), z.unknown()) });
const previous: ChannelSchemas = schemas.parse(JSON.parse(readFileSync(RECORDED, 'utf8')));
const current = channelSchemas();

/** What a neighbour of the previous version refuses, and why it may. Another difference breaks it. */
const NEW_TO_AN_OLDER_CONTROL_PLANE: Readonly<Record<string, readonly RegExp[]>> = {
  // It refuses the call, which is for one session alone: that session does not start (decision 0119).
  credentialsRequest: [/^\.credentials\[\]\.narrowing: is a field that is not read$/],
  // It refuses such an event by itself, and takes the others of the call; the sidecar keeps it, and sends it again after the update (decision 0164).
  auditEvent: [/^\.type: the value "[a-z_.]+" is not read$/, /^\.data\.svc\.[a-z_.]+: is a field that is not read$/],
};
const NEW_TO_AN_OLDER_SIDECAR: Readonly<Record<string, readonly RegExp[]>> = {
  // A longer one is a set of regions. A sidecar that does not say that it knows them gets another region (decision 0150).
  snapshotPayload: [
    /^\.host_bindings\[\]\.region: maxLength is 256, and 64 is read$/,
    // A sidecar that does not say that it knows limits of bytes gets no credential for the binding (decision 0121).
    /^\.host_bindings\[\]\.bytes_per_day: is a field that is not read$/,
    // Only a sidecar that says that it knows the field gets it (decision 0168).
    /^\.client_certificates: is a field that is not read$/,
  ],
  // A key set of AWS: without the field the value would be used as another kind of credential, so the credential is refused.
  sealedCredential: [/^\.signed_as: is a field that is not read$/],
};

/** The names that both versions have, with what of the writer's messages the reader refuses. */
function compareAll(
  writer: ChannelSchemas['requests'],
  reader: ChannelSchemas['requests'],
): Record<string, readonly string[]> {
  const shared = Object.keys(writer).filter((name) => Object.hasOwn(reader, name));
  return Object.fromEntries(shared.map((name) => [name, findUnread(writer[name], reader[name])]));
}

/** What is left of the problems without those that may be. */
function unexpected(
  found: Record<string, readonly string[]>,
  allowed: Readonly<Record<string, readonly RegExp[]>>,
): readonly string[] {
  return Object.entries(found).flatMap(([name, problems]) =>
    problems
      .filter((problem) => allowed[name]?.some((pattern) => pattern.test(problem)) !== true)
      .map((problem) => `${name}${problem}`),
  );
}

describe('a control plane of this version', () => {
  test('reads everything that a sidecar of the previous version sends', () => {
    expect(Object.keys(previous.requests).filter((name) => !Object.hasOwn(current.requests, name))).toEqual([]);
    expect(unexpected(compareAll(previous.requests, current.requests), {})).toEqual([]);
  });

  test('answers a sidecar of the previous version with nothing that it refuses', () => {
    expect(unexpected(compareAll(current.replies, previous.replies), NEW_TO_AN_OLDER_SIDECAR)).toEqual([]);
  });
});

describe('a sidecar of this version', () => {
  test('reads everything that a control plane of the previous version answers', () => {
    expect(Object.keys(previous.replies).filter((name) => !Object.hasOwn(current.replies, name))).toEqual([]);
    expect(unexpected(compareAll(previous.replies, current.replies), {})).toEqual([]);
  });

  test('sends a control plane of the previous version nothing that holds up the rest', () => {
    expect(unexpected(compareAll(current.requests, previous.requests), NEW_TO_AN_OLDER_CONTROL_PLANE)).toEqual([]);
  });
});

test('a new required field of a request would be noticed', () => {
  const schema = z.toJSONSchema(z.strictObject({ request_id: z.string(), more: z.string() }));
  const changed = { credentialsRequest: schema };
  expect(unexpected(compareAll(previous.requests, changed), {})).toContain(
    'credentialsRequest.more: is required, and may be missing',
  );
});
