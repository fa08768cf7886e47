import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { listen } from '../../machine/connection/listen.ts';
import { PROXY_SOCKET } from '../../sandbox/bubblewrap/sandbox_folder.ts';
import { companionName } from '../../sandbox/carrier/companion_container.ts';
import { isInVirtualMachine } from '../../sandbox/engine/engine_host.ts';
import type { NamespaceRights } from '../../sandbox/engine/namespace_rights.ts';
import type { Sandbox } from '../session/sandbox.ts';
import type { Session } from '../session/session.ts';
import type { ContainerEngine } from '../session/session_containers.ts';
import { checkContainerProcess, type ContainerProcess, openContainerNamespace } from './container_namespace.ts';
import { listenByCompanion } from './companion_listener.ts';
import { listenInNamespace, type WantedListener } from './namespace_listener.ts';
import { listenInFolder } from './listen_in_folder.ts';
import { listenByStream } from './stream_listener.ts';
import { waitForEnd } from './wait_for_end.ts';
import { reachFailure } from './reach_failure.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ReachFailureReason } from './reach_failure.ts';

/** The callers that a listener in a container's reach serves. */
export type ListenerKind =
  /** One session, which authenticates. */
  | { readonly kind: 'session'; readonly session: Session }
  /** One session, for clients that cannot send credentials. */
  | { readonly kind: 'relay'; readonly session: Session }
  /** Every session, on a bridge's gateway address. */
  | { readonly kind: 'gateway'; readonly address: string };

/** The proxy's address for a session's container. */
export interface SessionListener {
  readonly listener: 'namespace' | 'gateway';
  readonly address: string;
  readonly port: number;
}

interface StartedContainer {
  readonly sandbox: Sandbox;
  readonly containerId: string;
  readonly relay: boolean;
}

interface SessionListenersOptions {
  readonly makeListener: (kind: ListenerKind) => Server;
  readonly engineAt: (address: Sandbox['runtime']) => ContainerEngine;
  readonly rightsAt: (endpoint: string) => NamespaceRights;
  /** The release of this machine's kernel. */
  readonly kernelRelease: string;
  /** `$SVC_HOME/sandboxes`. */
  readonly sandboxes: string;
  /** The sidecar's own port; a gateway's listener uses the same port if it is free. */
  readonly ownPort: () => number;
  /** The value of the label `svc.home` of this state directory. */
  readonly homeLabel: string;
  /** This process's user and group, `uid:gid`. */
  readonly user: string;
  readonly warn: (message: string) => void;
  readonly pause: (ms: number) => Promise<void>;
  /** `/proc`, except in tests. */
  readonly proc?: string;
}

/** Inside a container's network namespace. */
const NAMESPACE_PORT = 7421;
export const RELAY_PORT = 7422;
const LOOPBACK = '127.0.0.1';
const BRIDGE = 'bridge';
const INSIDE: SessionListener = { listener: 'namespace', address: LOOPBACK, port: NAMESPACE_PORT };

/** The listeners through which containers reach the proxy (docs/decisions/0018). */
export class SessionListeners {
  readonly #options: SessionListenersOptions;
  readonly #inVirtualMachine = new Map<string, boolean>();
  readonly #gateways = new Map<string, Promise<SessionListener>>();
  readonly #servers = new Set<Server>();

  constructor(options: SessionListenersOptions) {
    this.#options = options;
  }

  /** Decides how a new sandbox reaches the proxy. A gateway's listener is open when this resolves. */
  async planFor(sandbox: Sandbox): Promise<Result<SessionListener, Failure<ReachFailureReason>>> {
    const { endpoint } = sandbox.runtime;
    if (this.#options.rightsAt(endpoint) !== 'none' || sandbox.egress !== 'open') return ok(INSIDE);
    const isElsewhere = await this.isInVirtualMachine(sandbox);
    if (!isElsewhere.ok) return isElsewhere;
    if (isElsewhere.value) return ok(INSIDE);
    const gateway = await this.#options.engineAt(sandbox.runtime).gatewayOf(BRIDGE);
    if (!gateway.ok) return err(reachFailure('engine_unavailable', gateway.error.message));
    if (gateway.value === null) return err(reachFailure('egress_unavailable', 'The engine has no default bridge.'));
    return this.#gatewayAt(gateway.value);
  }

  /** Whether a sandbox's engine says that its containers run in a virtual machine. */
  async isInVirtualMachine({ runtime }: Sandbox): Promise<Result<boolean, Failure<ReachFailureReason>>> {
    const known = this.#inVirtualMachine.get(runtime.endpoint);
    if (known !== undefined) return ok(known);
    const host = await this.#options.engineAt(runtime).host();
    if (!host.ok) return err(reachFailure('engine_unavailable', host.error.message));
    const isThere = isInVirtualMachine(host.value, this.#options.kernelRelease);
    this.#inVirtualMachine.set(runtime.endpoint, isThere);
    return ok(isThere);
  }

  /**
   * Opens the listener of a started container, after verifying that the process belongs to it; with `relay` also the
   * listener for clients that cannot send credentials.
   */
  async open(
    session: Session,
    pid: number,
    relay: boolean,
  ): Promise<Result<SessionListener, Failure<ReachFailureReason>>> {
    const { sandbox, containerId } = session;
    if (sandbox === null || containerId === null) throw new Error('the session has no container yet');
    const own = { sandbox, containerId, relay };
    const isElsewhere = await this.isInVirtualMachine(sandbox);
    if (!isElsewhere.ok) return isElsewhere;
    return isElsewhere.value ? this.#openByStream(session, own) : this.#openHere(session, pid, own);
  }

  /** For a container whose processes are on this machine. */
  async #openHere(
    session: Session,
    pid: number,
    { sandbox, containerId, relay }: StartedContainer,
  ): Promise<Result<SessionListener, Failure<ReachFailureReason>>> {
    const rights = this.#options.rightsAt(sandbox.runtime.endpoint);
    const { engineAt, proc = '/proc' } = this.#options;
    const wanted = { pid, containerId, pidOf: () => engineAt(sandbox.runtime).pidOf(containerId), proc };
    const listener = await this.planFor(sandbox);
    if (!listener.ok) return listener;
    const isGateway = listener.value.listener === 'gateway';
    if (relay && isGateway) return err(relayUnavailableFailure());
    const openOnLoopback = (): ReturnType<typeof checkContainerProcess> =>
      rights === 'none'
        ? this.#openByCompanion(session, wanted, { relay, engine: engineAt(sandbox.runtime) })
        : this.#openInNamespace(session, wanted, { relay, enterUser: rights === 'rootless' });
    const opened = await (isGateway ? checkContainerProcess(wanted) : openOnLoopback());
    if (!opened.ok) return opened;
    session.container = opened.value;
    return listener;
  }

  /**
   * Opens the socket of a session whose sandbox has a folder here. Only that sandbox sees the folder, and only its session is
   * accepted at the socket. Nothing to do for another session.
   */
  async openSocket(session: Session): Promise<Result<void, Failure<ReachFailureReason>>> {
    const { hostSandbox } = session;
    if (hostSandbox === null) return ok(undefined);
    const folder = join(this.#options.sandboxes, hostSandbox.folder);
    try {
      const server = this.#options.makeListener({ kind: 'session', session });
      session.onEnd(createCloser(server));
      await listenInFolder(server, folder, PROXY_SOCKET);
      return ok(undefined);
    } catch (error) {
      const why = error instanceof Error ? error.message : 'unknown error';
      return err(reachFailure('listener_failed', `The proxy could not listen in the sandbox's folder: ${why}.`));
    }
  }

  /** Opens the listeners of a restored session again, where its container or its sandbox already looks for them. */
  async reopen(session: Session): Promise<Result<void, Failure<ReachFailureReason>>> {
    const { listener: known, container, sandbox, containerId } = session;
    if (session.hostSandbox !== null) return this.openSocket(session);
    if (known === null || sandbox === null || containerId === null) return ok(undefined);
    const own = { sandbox, containerId, relay: known.relay };
    // Its process was found here when it was opened first: the engine need not answer for that.
    const opened = await (container === null
      ? this.#openByStream(session, own)
      : this.#openHere(session, container.pid, own));
    if (!opened.ok) return opened;
    const { listener, address, port } = opened.value;
    if (listener === known.listener && address === known.address && port === known.port) return ok(undefined);
    return err(reachFailure('listener_failed', `The container reaches the proxy at ${known.address}:${known.port}.`));
  }

  /** Closes the listeners that belong to no session. */
  close(): void {
    for (const server of this.#servers) server.close();
  }

  async #openInNamespace(
    session: Session,
    container: ContainerProcess,
    { relay, enterUser }: { readonly relay: boolean; readonly enterUser: boolean },
  ): ReturnType<typeof checkContainerProcess> {
    const opened = await openContainerNamespace(container);
    if (!opened.ok) return opened;
    const namespace = opened.value;
    const wanted = this.#makeListeners(session, relay);
    try {
      const listening = await listenInNamespace(wanted, { namespace, enterUser });
      if (!listening.ok) return listening;
      for (const { server } of wanted) session.onEnd(createCloser(server));
      return ok(namespace.process);
    } finally {
      await namespace.close();
    }
  }

  /** Without the right to enter the container's network: a companion container that shares it has the session's sockets mounted. */
  async #openByCompanion(
    session: Session,
    container: ContainerProcess,
    { relay, engine }: { readonly relay: boolean; readonly engine: ContainerEngine },
  ): ReturnType<typeof checkContainerProcess> {
    const checked = await checkContainerProcess(container);
    if (!checked.ok) return checked;
    const { homeLabel, user } = this.#options;
    const { id: sessionId, directory } = session;
    const wanted = this.#makeListeners(session, relay);
    const own = { engine, sessionId, containerId: container.containerId, directory, homeLabel, user };
    const listening = await listenByCompanion(wanted, own);
    if (!listening.ok) return listening;
    for (const { server } of wanted) session.onEnd(createCloser(server));
    session.companion = companionName(sessionId);
    // The end of the session has looked for its containers before this one was there.
    if (session.ended) await engine.remove(session.companion);
    return checked;
  }

  /** In a virtual machine a companion container carries connections over its streams, whatever the sidecar's rights here are. */
  async #openByStream(
    session: Session,
    { sandbox, containerId, relay }: StartedContainer,
  ): Promise<Result<SessionListener, Failure<ReachFailureReason>>> {
    const engine = this.#options.engineAt(sandbox.runtime);
    const state = await engine.inspect(containerId);
    if (!state.ok) return err(reachFailure('engine_unavailable', state.error.message));
    if (state.value?.running !== true) return err(containerEndedFailure(containerId));
    const { homeLabel, warn, pause } = this.#options;
    const { id: sessionId, directory } = session;
    const wanted = this.#makeListeners(session, relay);
    const own = { engine, sessionId, containerId, imageId: sandbox.imageId, directory, homeLabel, warn, pause };
    const carrier = await listenByStream(wanted, own);
    if (!carrier.ok) return carrier;
    for (const { server } of wanted) session.onEnd(createCloser(server));
    session.onEnd(() => carrier.value.close());
    session.companion = companionName(sessionId);
    if (session.ended) await engine.remove(session.companion);
    void waitForEnd(engine, containerId, { hasEnded: () => session.ended, pause }).then(
      () => (session.containerIsOver = true),
    );
    return ok(INSIDE);
  }

  #makeListeners(session: Session, relay: boolean): readonly WantedListener[] {
    const { makeListener } = this.#options;
    const own = { server: makeListener({ kind: 'session', session }), port: NAMESPACE_PORT };
    return relay ? [own, { server: makeListener({ kind: 'relay', session }), port: RELAY_PORT }] : [own];
  }

  /** One listener per bridge, created on first use. */
  async #gatewayAt(address: string): Promise<Result<SessionListener, Failure<ReachFailureReason>>> {
    const known = this.#gateways.get(address) ?? this.#listenAt(address);
    this.#gateways.set(address, known);
    try {
      return ok(await known);
    } catch (error) {
      this.#gateways.delete(address);
      const why = error instanceof Error ? error.message : 'unknown error';
      return err(reachFailure('listener_failed', `The proxy could not listen on the bridge's ${address}: ${why}.`));
    }
  }

  async #listenAt(address: string): Promise<SessionListener> {
    const server = this.#options.makeListener({ kind: 'gateway', address });
    const port = await listen(server, this.#options.ownPort(), address).catch(() => listen(server, 0, address));
    this.#servers.add(server);
    return { listener: 'gateway', address, port };
  }
}

/** Closes a listener and every connection accepted by it. */
function createCloser(server: Server): () => void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}

function containerEndedFailure(containerId: string): Failure<ReachFailureReason> {
  return reachFailure('not_the_container', `The engine runs no container ${containerId.slice(0, 12)}.`);
}

function relayUnavailableFailure(): Failure<ReachFailureReason> {
  const message =
    'A relay with open egress needs the sidecar to run as root or with a rootless engine: on a bridge it would act for every container. Leave it out, or launch with --egress=sealed.';
  return reachFailure('egress_unavailable', message);
}
