import type { ConnectorSpec } from '../model/connector.ts';
import { compilePolicy, resolve } from '../resolve/resolve.ts';

/** What the audit log keeps of a request: no query and no body. */
export interface LoggedRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

export interface OperationMatches {
  readonly operation: string;
  readonly count: number;
  /** Some of the requests, each once. */
  readonly examples: readonly string[];
  /** The body decides between this operation and others, and the log has no bodies. */
  readonly byBody: boolean;
}

export interface SpecMatches {
  readonly operations: readonly OperationMatches[];
  /** Requests to the spec's hosts that are none of its operations: they would get no credential from it. */
  readonly others: OperationMatches;
  /** All requests to the spec's hosts. */
  readonly looked: number;
}

const MOST_EXAMPLES = 3;
const OTHERS = '';

/** Which of some requests each operation of a spec would have matched, by the matcher of the proxy. */
export function matchSpec(spec: ConnectorSpec, requests: readonly LoggedRequest[]): SpecMatches {
  const credential = { owner: 'personal', path: 'checked' } as const;
  const policy = compilePolicy([], [{ id: 'checked', owner: 'personal', spec, contentHash: '', credential }]);
  const found = new Map<string, OperationMatches>();
  const note = (operation: string, request: LoggedRequest, byBody: boolean): void => {
    const { count, examples } = found.get(operation) ?? noMatch(operation);
    const example = `${request.method} ${request.host}${request.path}`;
    const isNew = examples.length < MOST_EXAMPLES && !examples.includes(example);
    found.set(operation, { operation, count: count + 1, examples: isNew ? [...examples, example] : examples, byBody });
  };
  const own = requests.filter(({ host }) => policy.connectors.hosts.has(host));
  for (const request of own) {
    const resolution = resolve(policy, { ...request, query: null });
    if (resolution.kind === 'connector') note(resolution.match.operation.name, request, false);
    else if (resolution.kind === 'graphql' || resolution.kind === 'json') {
      for (const { operation } of resolution.candidates) note(operation.name, request, true);
    } else note(OTHERS, request, false);
  }
  return {
    operations: spec.operations.map(({ name }) => found.get(name) ?? noMatch(name)),
    others: found.get(OTHERS) ?? noMatch(OTHERS),
    looked: own.length,
  };
}

function noMatch(operation: string): OperationMatches {
  return { operation, count: 0, examples: [], byBody: false };
}
