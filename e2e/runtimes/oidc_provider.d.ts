declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  interface Stored {
    save(ttlSeconds?: number): Promise<string>;
    destroy(): Promise<void>;
  }
  interface Grant extends Stored {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
  }
  interface DeviceCode extends Stored {
    accountId?: string;
    grantId?: string;
    scope?: string;
    authTime?: number;
  }
  interface Context {
    readonly path: string;
    readonly method: string;
    readonly oidc?: {
      readonly params?: Readonly<Record<string, unknown>>;
      readonly client?: { readonly clientId: string };
      readonly session?: { readonly accountId?: string };
    };
    body: unknown;
    status: number;
  }

  export const errors: { readonly InvalidTarget: new () => Error };

  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: (new (fields: object) => Grant) & { find(id: string): Promise<Grant | undefined> };
    readonly DeviceCode: { findByUserCode(code: string, options?: object): Promise<DeviceCode | undefined> };
    callback(): RequestListener;
    registerGrantType(name: string, handler: (context: Context) => Promise<void>, parameters: readonly string[]): void;
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    on(event: string, listener: (...details: unknown[]) => void): void;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
