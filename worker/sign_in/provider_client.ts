import { ResponseBodyError, AuthorizationResponseError } from 'oauth4webapi';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { NoReply } from '../services/oauth/oauth_fetch.ts';
import { targetProblem } from '../kernel/outbound.ts';
import type { ProviderInput, ProviderFailureReason } from './provider.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** Our client at a provider. */
export interface ClientVariables {
  readonly clientId: string;
  readonly clientSecret: Secret;
}

/**
 * The client's id and secret from the variables with this prefix; null if neither is set, a sentence if one is missing.
 */
export function clientVariables(
  { variables }: Pick<ProviderInput, 'variables'>,
  prefix: string,
): Result<ClientVariables | null, string> {
  const [id, secret] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`];
  const [clientId, clientSecret] = [variables[id], variables[secret]];
  if (clientId === undefined && clientSecret === undefined) return ok(null);
  if (clientId === undefined) return err(`${secret} is set, but ${id} is not: set both`);
  if (clientSecret === undefined) return err(`${id} is set, but ${secret} is not: set both`);
  return ok({ clientId: clientId.reveal(), clientSecret });
}

/** The base URL in a variable, without a trailing slash. Refuses a URL that must not be called. */
export function urlVariable(
  { variables, isLocal }: Pick<ProviderInput, 'variables' | 'isLocal'>,
  name: string,
  otherwise: string | null,
): Result<string, string> {
  const text = variables[name]?.reveal() ?? otherwise;
  if (text === null) return err(`${name} is not set: give the provider's https URL`);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.search !== '' || url.hash !== '') {
    return err(`${name} is not a plain URL: use one such as https://id.example.com`);
  }
  const problem = targetProblem(url, isLocal);
  return problem === null ? ok(text.replace(/\/+$/, '')) : err(`${name} cannot be used: ${problem.message}`);
}

/** Thrown when a provider's answer lacks something. */
export class ProviderError extends Error {
  readonly reason: ProviderFailureReason;

  constructor(reason: ProviderFailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Runs code that talks to a provider. Any error of it or of the library becomes a refusal without the provider's texts.
 */
export async function attempt<T>(
  title: string,
  work: () => Promise<T>,
): Promise<Result<T, Failure<ProviderFailureReason>>> {
  try {
    return ok(await work());
  } catch (error) {
    return err(providerFailure(title, error));
  }
}

function providerFailure(title: string, error: unknown): Failure<ProviderFailureReason> {
  if (error instanceof ProviderError) return { reason: error.reason, message: error.message };
  if (error instanceof NoReply) return { reason: 'provider_failed', message: error.outbound.message };
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    return { reason: 'provider_refused', message: `${title} refused: ${word(error.error)}` };
  }
  // The library throws its own errors, and a TypeError if an answer lacks a member.
  if (!(error instanceof Error)) throw error;
  return { reason: 'provider_failed', message: `the answer of ${title} does not prove who you are` };
}

/** An error code of a provider, made safe to display. */
export function word(text: string): string {
  return text.replaceAll(/[^\w.-]/g, '').slice(0, 64) || 'no reason given';
}
