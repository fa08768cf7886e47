import type { Injection, InjectionScheme } from '../model/host_binding.ts';
import type { Refusal } from '../model/refusal.ts';
import type { Result } from '../model/result.ts';
import type { HashPort, InjectedRequest, OutgoingRequest, PayloadBody } from './outgoing_request.ts';

/**
 * What a client put in a binding's place. `foreign_presigned`: the target is a URL signed with a foreign key, which is
 * complete and is never signed again, under any emit mechanism.
 */
export type Presented = 'absent' | 'sentinel' | 'foreign' | 'foreign_presigned';

export type InjectionOf<S extends InjectionScheme> = Extract<Injection, { readonly scheme: S }>;

/** Everything that a scheme may use to write a credential. The texts are revealed secrets: they may go only onto the request. */
export interface WriteInput {
  readonly request: OutgoingRequest;
  /** The sentinel to swap in place; null: remove every copy that the client sent and write a new one. */
  readonly sentinel: string | null;
  readonly credential: string;
  readonly sessionToken: string | null;
  /** Not a secret. Null: the injection has it. */
  readonly accessKeyId: string | null;
  readonly body: PayloadBody;
  readonly now: Date;
  readonly hash: HashPort;
}

type WriteResult = Result<InjectedRequest, Refusal>;

/** One injection scheme: where its place is, and how a credential is written there. */
export interface SchemeAdapter<S extends InjectionScheme> {
  findPresented(injection: InjectionOf<S>, request: OutgoingRequest, sentinel: string | null): Presented;
  write(injection: InjectionOf<S>, input: WriteInput): WriteResult | Promise<WriteResult>;
  /** The header that carries the credential, in lower case; null if it goes into the target. */
  placeHeader(injection: InjectionOf<S>): string | null;
  /** Further texts that an upstream could reflect, besides the credential itself. */
  deriveSecrets(injection: InjectionOf<S>, credential: string): readonly string[];
}
