import { z } from 'zod';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import {
  type Advice,
  anotherSecret,
  callManager,
  keptPlan,
  keptValue,
  notAnAnswer,
  tokenProblem,
  withoutSlash,
} from '../kept_value.ts';
import type { MintingSource } from '../source_port.ts';

type Source = SourceOf<'doppler'>;

/** `computed` has the references in a value filled in. It is null for a token that may not see it. */
const answer = z.object({ name: z.string(), value: z.object({ computed: z.string().nullable() }) });

/** A secret of a config of Doppler, by its API (v3). */
export const DOPPLER: MintingSource<'doppler'> = {
  describe: (source) => whereOf(source),
  plan: (source) => keptPlan('the token of the source', source.secret_name, urlOf(source)),
  checkKey: async (_source, key) => tokenProblem(key, 'token of Doppler'),
  async mint({ source, key, outbound, nowMs }) {
    const url = urlOf(source);
    const called = await callManager({ outbound, url, headers: { authorization: `Bearer ${key.reveal()}` }, why: WHY });
    if (!called.ok) return called;
    const { data } = answer.safeParse(called.value);
    if (data === undefined) return notAnAnswer(url);
    if (data.name !== source.secret_name) return anotherSecret(url);
    return keptValue(data.value.computed, { where: whereOf(source), nowMs });
  },
};

function urlOf({ doppler_url: url, project, config, secret_name: name }: Source): string {
  return `${withoutSlash(url)}/v3/configs/config/secret?${new URLSearchParams({ project, config, name }).toString()}`;
}

function whereOf({ secret_name: name, project, config, doppler_url: url }: Source): string {
  return `${name} of ${project}/${config} at ${new URL(url).host}`;
}

const WHY: Advice = {
  400: 'it does not accept the request: compare project, config and secret_name',
  401: 'it does not accept the token: it has ended, or was revoked; give the source again with a valid one',
  403: 'the token may not read this config: allow it, or use a service token of this config',
  404: 'there is no such project, config or secret: compare the three',
  429: 'a quota is used up: try again later',
};
