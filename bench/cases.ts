/** What is measured. One unit is one request, or one whole transfer. */

export const CASE_IDS = [
  'keepalive_1',
  'keepalive_32',
  'new_tunnel',
  'reply_64k',
  'download',
  'upload',
  'streams_100',
] as const;
export type CaseId = (typeof CASE_IDS)[number];

export interface LoadCase {
  readonly kind: 'load';
  readonly id: CaseId;
  readonly title: string;
  readonly path: string;
  readonly connections: number;
  /** Each request on its own tunnel. */
  readonly newTunnel: boolean;
}

export interface TransferCase {
  readonly kind: 'transfer';
  readonly id: CaseId;
  readonly title: string;
  readonly upload: boolean;
}

export interface StreamsCase {
  readonly kind: 'streams';
  readonly id: CaseId;
  readonly title: string;
  readonly path: string;
  /** Requests at a time, on one connection of HTTP/2. */
  readonly streams: number;
}

export type Case = LoadCase | TransferCase | StreamsCase;

function load(id: CaseId, title: string, path: string, connections: number, newTunnel = false): LoadCase {
  return { kind: 'load', id, title, path, connections, newTunnel };
}

export const CASES: readonly Case[] = [
  load('keepalive_1', 'small request, 1 connection', '/small', 1),
  load('keepalive_32', 'small request, 32 connections', '/small', 32),
  load('new_tunnel', 'new tunnel and one request, 8 at a time', '/small', 8, true),
  load('reply_64k', '64 KiB reply, 16 connections', '/64k', 16),
  { kind: 'transfer', id: 'download', title: '256 MiB passthrough download', upload: false },
  { kind: 'transfer', id: 'upload', title: '256 MiB passthrough upload', upload: true },
  {
    kind: 'streams',
    id: 'streams_100',
    title: 'small request, 100 streams on 1 HTTP/2 connection',
    path: '/small',
    streams: 100,
  },
];
