/** The closed set of injection schemes (specification section 2, Injection schemes). */
export const INJECTION_SCHEMES = ['bearer', 'basic', 'header-template', 'query-param', 'sigv4-resign'] as const;
export type InjectionScheme = (typeof INJECTION_SCHEMES)[number];

/** How the credential enters the request (specification section 2, Emit mechanisms). */
export const EMIT_MECHANISMS = ['inject', 'sentinel-swap'] as const;
export type EmitMechanism = (typeof EMIT_MECHANISMS)[number];

/** The coarse effects of the plan manifest's trust contract; `read` admits only safe methods. */
export const EFFECTS = ['read', 'write', 'delete', 'spend', 'external-send'] as const;
export type Effect = (typeof EFFECTS)[number];

/** The namespace of a row and of its references. */
export const OWNERS = ['personal', 'enterprise'] as const;
export type Owner = (typeof OWNERS)[number];

/** A vault reference in its owner's namespace: `path` is that of `vault://<path>`. A personal reference never names an enterprise secret. */
export interface CredentialRef {
  readonly owner: Owner;
  /** The vault path, without `vault://`. */
  readonly path: string;
}

/** A scheme with its parameters: the scheme names the mechanism, the parameters the exact wire form. */
export type Injection =
  | { readonly scheme: 'bearer' }
  | { readonly scheme: 'basic'; readonly username: string }
  | { readonly scheme: 'header-template'; readonly header: string; readonly template: string }
  | { readonly scheme: 'query-param'; readonly queryParam: string }
  | {
      readonly scheme: 'sigv4-resign';
      readonly accessKeyId: string;
      readonly region: string;
      readonly service: string;
      readonly sessionTokenRef?: CredentialRef;
    };

export type Emit =
  | { readonly mechanism: 'inject' }
  | { readonly mechanism: 'sentinel-swap'; readonly sentinel: string; readonly env?: string };

/** A user-declared host binding, validated (specification section 2, Host binding). Hosts are lower-case ASCII (IDNA). */
export interface HostBinding {
  readonly id: string;
  readonly owner: Owner;
  /** An exact host, or one leading `*.` over a suffix that has a dot; any depth, never the apex. */
  readonly host: string;
  readonly credential: CredentialRef;
  readonly injection: Injection;
  readonly emit: Emit;
  /** Empty: unconstrained, scoped only to the matched host pattern. */
  readonly allowedHosts: readonly string[];
  readonly effect?: Effect;
  /** `buffer`: the whole request body is read before the request is re-issued; `stream`: it is forwarded as it arrives. */
  readonly body: 'buffer' | 'stream';
  /** The reply keeps its cookies and authentication challenges; otherwise they are removed. */
  readonly keepCookies?: boolean;
  /** The most requests that get the credential in any 60 seconds, on one machine. */
  readonly requestsPerMinute?: number;
  /** The same in any 24 hours. */
  readonly requestsPerDay?: number;
  /** The bytes of their bodies and of the bodies of their replies in any 24 hours, after which no further request gets it. */
  readonly bytesPerDay?: number;
}

/**
 * A certificate with which requests to one host may be authenticated in the TLS handshake, beside any binding or connector. The
 * host is exact, with its port if that is not 443: whoever runs a zone decides where a wildcard leads.
 */
export interface ClientCertificate {
  readonly id: string;
  readonly host: string;
  /** The secret that has the PEM certificates and the PEM key; always a personal one. */
  readonly credential: CredentialRef;
  /** As a binding's: `read` admits only safe methods. */
  readonly effect?: Effect;
  /** The host is asked over HTTP/2 for clients that offer it: it is not dialled before the first request, so it cannot choose. */
  readonly http2?: true;
}

/** How many requests may get a credential on one machine, and with how many bytes; absent: any number. */
export type RequestLimits = Pick<HostBinding, 'requestsPerMinute' | 'requestsPerDay' | 'bytesPerDay'>;
