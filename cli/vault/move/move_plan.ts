import { isDeepStrictEqual } from 'node:util';
import { parseBindingReference, parseVaultReference } from '../../../shared/model/vault_path.ts';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import type { ConnectorRecord } from '../../../shared/wire/connectors/connectors.ts';
import { duplicateBinding, type HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { ClientCertificateRecord } from '../../../shared/wire/hosts/client_certificates.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { inputOf } from '../../bindings/binding_file.ts';
import {
  certificateInput,
  connectorKey,
  hasOwnKey,
  isAuthorised,
  secretKey,
  serverKey,
  serverInput,
} from './moved_things.ts';
import type { VaultContents } from './vault_contents.ts';

/** `new`: it will be made there. `there`: it is there already, and the same. `clash`: another one is. `stays`: it is not moved. */
export type MoveState = 'new' | 'there' | 'clash' | 'stays';

export const MOVE_KINDS = [
  'secret',
  'binding',
  'tunnel_host',
  'client_certificate',
  'connector',
  'mcp_server',
] as const;

/** What becomes of one thing. */
export interface MoveItem {
  readonly kind: (typeof MOVE_KINDS)[number];
  readonly id: string;
  readonly name: string;
  readonly state: MoveState;
  /** Why it clashes or stays. */
  readonly why: string | null;
}

/** What the other vault says of values that may be there, by their keys. A value that is not in it is not there. */
export type Comparisons = ReadonlyMap<string, 'absent' | 'different' | 'same'>;

type Judged = Pick<MoveItem, 'state' | 'why'>;

const NEW: Judged = { state: 'new', why: null };
const THERE: Judged = { state: 'there', why: null };
const clash = (why: string): Judged => ({ state: 'clash', why });
const stays = (why: string): Judged => ({ state: 'stays', why });

/** Decides for each thing of one vault what a move would do with it. Nothing that is there is ever replaced. */
export function planMove(here: VaultContents, there: VaultContents, compared: Comparisons): readonly MoveItem[] {
  const secrets = new Map(here.secrets.map((secret) => [secret.path, judgeSecret(secret, here, there, compared)]));
  const paths = { here: secrets, there: new Set(there.secrets.map(({ path }) => path)) };
  return [
    ...here.secrets.map(({ id, path }) => ({ kind: 'secret' as const, id, name: path, ...(secrets.get(path) ?? NEW) })),
    ...here.bindings.map((binding) => ({
      kind: 'binding' as const,
      id: binding.id,
      name: binding.host,
      ...judgeBinding(binding, there, paths),
    })),
    ...here.tunnelHosts.map(({ id, host }) => ({
      kind: 'tunnel_host' as const,
      id,
      name: host,
      ...(there.tunnelHosts.some((other) => other.host === host) ? THERE : NEW),
    })),
    ...(here.certificates ?? []).map((certificate) => ({
      kind: 'client_certificate' as const,
      id: certificate.id,
      name: certificate.host,
      ...judgeCertificate(certificate, there, paths),
    })),
    ...here.connectors.map((connector) => ({
      kind: 'connector' as const,
      id: connector.id,
      name: connector.fqn,
      ...judgeConnector(connector, there, paths, compared),
    })),
    ...here.servers.map((server) => ({
      kind: 'mcp_server' as const,
      id: server.id,
      name: server.name,
      ...judgeServer(server, there, compared),
    })),
  ];
}

function judgeSecret({ path }: SecretRecord, here: VaultContents, there: VaultContents, compared: Comparisons): Judged {
  if (!there.secrets.some((other) => other.path === path)) return NEW;
  const isBorrowed = (vault: VaultContents): boolean =>
    vault.sources.some((source) => source.path === path && source.source.kind === BORROWED_KIND);
  const isSame = isBorrowed(here) ? isBorrowed(there) : compared.get(secretKey(path)) === 'same';
  return isSame ? THERE : clash('another secret is at this path there');
}

interface Paths {
  readonly here: ReadonlyMap<string, Judged>;
  readonly there: ReadonlySet<string>;
}

/** Why what refers to this path may not go there: there, the path would mean another secret. */
function pathProblem(path: string, { here, there }: Paths): string | null {
  const secret = here.get(path);
  if (secret === undefined) return there.has(path) ? `${path} is a secret there, and none here` : null;
  return secret.state === 'new' || secret.state === 'there' ? null : `its secret ${path} is not moved`;
}

function judgeBinding(binding: HostBindingRecord, there: VaultContents, paths: Paths): Judged {
  for (const reference of [binding.credential_ref, binding.session_token_ref]) {
    if (reference === undefined) continue;
    const own = parseVaultReference(reference);
    if (!own.ok) return stays(parseBindingReference(reference).ok ? LOGIN : 'its credential cannot be moved');
    const problem = pathProblem(own.value, paths);
    if (problem !== null) return stays(problem);
  }
  const other = duplicateBinding(there.bindings, { ...inputOf(binding) });
  if (other === null) return NEW;
  return isDeepStrictEqual(inputOf(other), inputOf(binding)) ? THERE : clash('another binding of this host is there');
}

function judgeCertificate(certificate: ClientCertificateRecord, there: VaultContents, paths: Paths): Judged {
  if (there.certificates === null) return stays('the control plane there has an earlier version, which has none');
  const path = parseVaultReference(certificate.credential_ref);
  const problem = path.ok ? pathProblem(path.value, paths) : 'its credential cannot be moved';
  if (problem !== null) return stays(problem);
  const other = there.certificates.find(({ host }) => host === certificate.host);
  if (other === undefined) return NEW;
  const isSame = isDeepStrictEqual(certificateInput(other), certificateInput(certificate));
  return isSame ? THERE : clash('another client certificate of this host is there');
}

const LOGIN = 'it uses the login of a program: log in there with svc login';
const AUTHORISED = 'its sign-in at the provider is not moved: set it up there, then remove it here';

function judgeConnector(connector: ConnectorRecord, there: VaultContents, paths: Paths, compared: Comparisons): Judged {
  if (isAuthorised(connector)) return stays(AUTHORISED);
  const { fqn, credential, content_hash: hash } = connector;
  const path = hasOwnKey(connector) || credential.state === 'missing' ? null : parseVaultReference(credential.ref);
  const problem = path === null ? null : path.ok ? pathProblem(path.value, paths) : 'its credential cannot be moved';
  if (problem !== null) return stays(problem);
  const other = there.connectors.find((each) => each.fqn === fqn);
  if (other === undefined) return NEW;
  if (other.content_hash !== hash) return clash('another version of it is there');
  if (credential.state === 'missing') return THERE;
  if (other.credential.state === 'missing') return NEW;
  const isSame = path === null ? compared.get(connectorKey(fqn)) === 'same' : other.credential.ref === credential.ref;
  return isSame ? THERE : clash('it has another credential there');
}

function judgeServer(server: McpServerRecord, there: VaultContents, compared: Comparisons): Judged {
  if (server.authorization !== null) return stays(AUTHORISED);
  const other = there.servers.find(({ name }) => name === server.name);
  if (other === undefined) return NEW;
  if (!isDeepStrictEqual(serverInput(other), serverInput(server))) return clash('another server of this name is there');
  const states = server.credentials
    .filter(({ set }) => set)
    .map(({ name }) => compared.get(serverKey(server.name, name)) ?? 'absent');
  if (states.includes('different')) return clash('it has another credential there');
  return states.includes('absent') ? NEW : THERE;
}
