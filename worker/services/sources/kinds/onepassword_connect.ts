import { z } from 'zod';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import {
  type Advice,
  anotherSecret,
  callManager,
  failed,
  keptPlan,
  keptValue,
  notAnAnswer,
  tokenProblem,
  withoutSlash,
} from '../kept_value.ts';
import type { MintingSource } from '../source_port.ts';

type Source = SourceOf<'onepassword_connect'>;

const part = z.object({ id: z.string().optional(), label: z.string().optional() });
const itemField = part.extend({ value: z.string().optional(), section: part.optional() });
const item = z.object({ id: z.string(), vault: z.object({ id: z.string() }), fields: z.array(itemField).default([]) });

/** A field of an item of 1Password, by the REST API of a Connect server (1.8). */
export const ONEPASSWORD_CONNECT: MintingSource<'onepassword_connect'> = {
  describe: (source) => whereOf(source),
  plan: (source) => keptPlan('the token of the source', `field ${source.field}`, urlOf(source)),
  checkKey: async (_source, key) => tokenProblem(key, 'token of a Connect server'),
  async mint({ source, key, outbound, nowMs }) {
    const url = urlOf(source);
    const headers = { authorization: `Bearer ${key.reveal()}` };
    const called = await callManager({ outbound, url, headers, why: WHY });
    if (!called.ok) return called;
    const { data } = item.safeParse(called.value);
    if (data === undefined) return notAnAnswer(url);
    if (data.id !== source.item_id || data.vault.id !== source.vault_id) return anotherSecret(url);
    const found = data.fields.filter(
      (each) => isNamed(each, source.field) && isInSection(each.section, source.section),
    );
    if (found.length > 1) {
      return failed(`${whereOf(source)} is there ${found.length} times: give its id as field, or its section`);
    }
    if (found[0] === undefined) return failed(`${whereOf(source)} is not there: compare field and section`);
    return keptValue(found[0].value, { where: whereOf(source), nowMs });
  },
};

function isNamed({ id, label }: z.output<typeof part>, name: string): boolean {
  return id === name || label === name;
}

function isInSection(section: z.output<typeof part> | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || (section !== undefined && isNamed(section, wanted));
}

function urlOf({ connect_url: url, vault_id: vault, item_id: id }: Source): string {
  return `${withoutSlash(url)}/v1/vaults/${vault}/items/${id}`;
}

function whereOf({ field, section, item_id: id, vault_id: vault, connect_url: url }: Source): string {
  const inside = section === undefined ? '' : ` in the section ${section}`;
  return `the field ${field}${inside} of the item ${id} in the vault ${vault} at ${new URL(url).host}`;
}

const WHY: Advice = {
  400: 'it does not accept the request: compare vault_id and item_id',
  401: 'it does not accept the token: give the source again with a valid one',
  403: 'the token may not read this vault: allow it at 1Password',
  404: 'there is no such item in this vault: compare vault_id, item_id and connect_url',
  500: 'it had an error: its log says which',
  503: 'it has not loaded its vaults yet: try again',
};
