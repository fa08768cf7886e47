import {
  evadesConnector,
  matchOperation,
  type ConnectorIndex,
  type ConnectorOperation,
} from '../connect/connector_index.ts';
import { describeDocument } from '../connect/graphql_document.ts';
import { graphqlWords } from '../connect/graphql_operation.ts';
import { jsonWords } from '../connect/json_operation.ts';
import { enforceOperation } from '../enforce/operation.ts';
import { operationHosts, type ApprovalRule, type InstalledConnector } from '../model/connector.ts';
import type { Effect, Owner } from '../model/host_binding.ts';
import type { RefusalReason } from '../model/refusal.ts';
import { toSentence } from '../model/sentence.ts';
import { formatVaultReference } from '../model/vault_path.ts';

/** An operation in an explanation; `credential_ref` names the vault entry, never its value. */
export interface ExplainedOperation {
  readonly connector_id: string;
  readonly owner: Owner;
  readonly fqn: string;
  readonly version: string;
  readonly operation: string;
  readonly effect: Effect;
  readonly approval: ApprovalRule;
  readonly credential_ref: string;
  /** False if the connector has no credential yet. */
  readonly credential_stored: boolean;
}

interface Subject {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/** The outcome for a request that is an operation; `code` is its refusal's, or null. */
interface OperationExplanation {
  readonly shown: ExplainedOperation;
  readonly code: RefusalReason | null;
  readonly reasons: readonly string[];
}

/** Explains a request that is an operation: the contract comes before the credential. */
export function explainOperation(
  { connector, operation, document }: ConnectorOperation,
  query: string | null,
  isStored: boolean,
): OperationExplanation {
  const { spec } = connector;
  const reference = formatVaultReference(connector.credential.path);
  const shown: ExplainedOperation = {
    connector_id: connector.id,
    owner: connector.owner,
    fqn: spec.fqn,
    version: spec.version,
    operation: operation.name,
    effect: operation.effect,
    approval: operation.approval,
    credential_ref: reference,
    credential_stored: isStored,
  };
  const title = operation.summary === '' ? '' : ` ("${operation.summary}")`;
  const asked = document === undefined ? '' : `, as its document asks for ${describeDocument(document)}`;
  const matched = `The request is the operation ${operation.name}${title}${asked} of the ${connector.owner} connector ${spec.fqn} ${spec.version}, which comes before every host binding.`;
  const contract = enforceOperation(operation, [], query);
  if (!contract.ok) {
    const { reason, message } = contract.error;
    return { shown, code: reason, reasons: [matched, `Refused: ${message}.`] };
  }
  if (!isStored) return { shown, code: 'credential_unavailable', reasons: [matched, missingSentence(shown)] };
  return { shown, code: null, reasons: [matched, ...proxiedSentences(shown)] };
}

/** The connectors that would have operations on a host, if they had a credential. */
export function inactiveSentences(connectors: readonly InstalledConnector[], host: string): string[] {
  const waiting = connectors.filter(
    ({ inactive, spec }) =>
      inactive === true && spec.operations.some((each) => operationHosts(spec, each).includes(host)),
  );
  return waiting.map(
    ({ owner, spec: { fqn } }) =>
      `The ${owner} connector ${fqn} is installed for ${host}, but inactive: it has no credential yet, so it changes nothing.`,
  );
}

function proxiedSentences({ effect, approval, credential_ref: reference }: ExplainedOperation): string[] {
  const upgrade =
    effect === 'read' || approval === 'required' ? 'Upgrade and method-override headers' : 'Method-override headers';
  return [
    `${upgrade} would be refused.`,
    ...(approval === 'required'
      ? [
          'It needs an approval: it is held for a minute, and "svc approvals" shows it; an approval covers one identical request.',
        ]
      : []),
    `The credential ${reference} is added: Authorization: Bearer <credential>; everything the client sent in that place is removed first.`,
  ];
}

function missingSentence({ owner, fqn, credential_ref: reference }: ExplainedOperation): string {
  return `Refused: the ${owner} credential ${reference} is not stored; store it with "svc connector credential set ${fqn}".`;
}

export const GRAPHQL_SENTENCE =
  'The path is a GraphQL endpoint of a connector: its document decides which operation a request is. A request that is none is refused, even if the host has a binding.';

/** The operations of a GraphQL endpoint, one per sentence. */
export function graphqlSentences(candidates: readonly ConnectorOperation[]): string[] {
  return candidates.map(({ connector, operation }) => {
    const approved = operation.approval === 'required' ? ', and needs an approval' : '';
    const documents = operation.graphql === undefined ? 'any document' : graphqlWords(operation.graphql);
    return `${documents} is the operation ${operation.name} of ${connector.spec.fqn}${approved}.`;
  });
}

export const JSON_SENTENCE =
  'Its JSON body decides which operation of a connector the request is. A request that is none is refused, even if the host has a binding.';

/** The operations that a body decides between, one per sentence. */
export function jsonSentences(candidates: readonly ConnectorOperation[]): string[] {
  return candidates.map(({ connector, operation }) => {
    const approved = operation.approval === 'required' ? ', and needs an approval' : '';
    const words = jsonWords(operation.json);
    const body = operation.json === undefined ? words : `a body with ${words}`;
    return toSentence(`${body} is the operation ${operation.name} of ${connector.spec.fqn}${approved}`);
  });
}

/** Why a request to a connector's host is none of its operations. Empty for other hosts. */
export function connectorSentences(connectors: ConnectorIndex, subject: Subject): string[] {
  if (!connectors.hosts.has(subject.host)) return [];
  const found = matchOperation(connectors, subject);
  if (found.kind !== 'ambiguous') return [`No operation of a connector is ${subject.method} at this path.`];
  const names = found.candidates.map(({ connector, operation }) => `${operation.name} of ${connector.spec.fqn}`);
  return [`Several operations match, so none is used: ${names.join(', ')}.`];
}

/** Why a request is refused although, as sent, it is not an operation. */
export function evasionSentence(connectors: ConnectorIndex, { method, host, path }: Subject): string {
  if (evadesConnector(connectors, { method, host, path })) {
    return `Servers may read this path differently, as an operation of a connector for ${host}: write it without "//", dot segments, ";" and needless escapes.`;
  }
  return `Servers may read ${method}, or a method that the query names, as that of an operation of a connector for ${host}.`;
}
