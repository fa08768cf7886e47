import { Secret } from '../../../shared/model/secret.ts';
import {
  sourceDryRunInput,
  sourceInput,
  sourcePlan,
  sourceRecord,
  sourcesPage,
  sourcesQuery,
  sourceTestInput,
  sourceTestReply,
} from '../../../shared/wire/secret_sources.ts';
import {
  listSourcePage,
  type PlannedSource,
  planSource,
  storeSource,
  testSource,
} from '../../services/sources/secret_sources.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postSecretSource = forUser({
  summary: 'Have a secret minted or borrowed',
  description:
    'From now on a provider mints the value at the path, which bindings name as vault://PATH. The key is always given again; no reply ever contains it or a value. The kind `borrowed` has no key: a program on the machine of each developer gives the value, by consent there. Delete it as a secret.',
  body: sourceInput,
  replies: { 201: sourceRecord, 200: sourceRecord },
  async handle({ context, who, body }) {
    const stored = await storeSource(context, who, { ...body, key: new Secret(body.key ?? '') });
    return changeReply(stored, ({ record, created }) => ({ status: created ? 201 : 200, json: record }));
  },
});

export const getSecretSources = forUser({
  summary: 'List sources of secrets, without keys and values',
  query: sourcesQuery,
  replies: { 200: sourcesPage },
  async handle({ context, who, query }) {
    return jsonReply(await listSourcePage(context, who, query));
  },
});

export const postSecretSourceTest = forUser({
  summary: 'Try a source',
  description: 'Mints a value and discards it. Tells what it would be for and until when.',
  body: sourceTestInput,
  replies: { 200: sourceTestReply },
  async handle({ context, who, body }) {
    return jsonReply(await testSource(context, who, body));
  },
});

export const postSecretSourceDryRun = forUser({
  summary: 'Say what a source would mint',
  description:
    'For whom, with which scope, by which call and until when at the latest. No provider is called and nothing is stored. For a source that is not stored, its fields and key are checked.',
  body: sourceDryRunInput,
  replies: { 200: sourcePlan },
  async handle({ context, who, body: { path = '', owner, source, key } }) {
    const planned: PlannedSource =
      source === undefined ? { owner, path } : { source, key: key === undefined ? null : new Secret(key) };
    return jsonReply(await planSource(context, who, planned));
  },
});
