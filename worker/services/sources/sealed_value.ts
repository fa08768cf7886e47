import { z } from 'zod';
import { Secret } from '../../../shared/model/secret.ts';
import { type AnySourceKind, SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import type { Minted } from './source_port.ts';

type MintedValue = Pick<Minted, 'value' | 'signedAs'>;

const keySet = z.strictObject({ secret_access_key: z.string(), access_key_id: z.string(), session_token: z.string() });

/** The one text of a value that the vault seals. The three parts of a key set are in it together. */
export function toSealedText({ value, signedAs }: MintedValue): Secret {
  if (signedAs === undefined) return value;
  const parts: z.input<typeof keySet> = {
    secret_access_key: value.reveal(),
    access_key_id: signedAs.accessKeyId,
    session_token: signedAs.sessionToken.reveal(),
  };
  return new Secret(JSON.stringify(parts));
}

/** The value of such a text, by the kind of its source. */
export function fromSealedText({ kind }: { readonly kind: AnySourceKind }, text: Secret): MintedValue {
  if (SOURCE_TABLE[kind].value !== 'key_set') return { value: text };
  const parts = keySet.parse(JSON.parse(text.reveal()));
  const signedAs = { accessKeyId: parts.access_key_id, sessionToken: new Secret(parts.session_token) };
  return { value: new Secret(parts.secret_access_key), signedAs };
}

/**
 * What the vault seals of what revokes a value, with the time of its mint: a worker of an earlier version stores a newer value and
 * leaves this as it is.
 */
export function toSealedRevocation(revokeBy: Secret, mintedAt: string): Secret {
  return new Secret(`${mintedAt} ${revokeBy.reveal()}`);
}

/** What revokes the value that was minted then; null if it is for another one. */
export function fromSealedRevocation(text: Secret, mintedAt: string): Secret | null {
  const prefix = `${mintedAt} `;
  const revealed = text.reveal();
  return revealed.startsWith(prefix) ? new Secret(revealed.slice(prefix.length)) : null;
}
