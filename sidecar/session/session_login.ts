import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { CapturedTokens, ControlChannel, OpenLogin } from '../control/control_channel.ts';
import type { LoginState, SessionLogin } from '../ports.ts';

/** The login of a session, whose tokens go to the control plane. */
export class CapturedLogin implements SessionLogin {
  readonly host: string;
  readonly path: string;
  readonly clientId: string;
  readonly grants: OpenLogin['grants'];
  readonly placeholder: string;
  readonly #login: OpenLogin;
  readonly #channel: Pick<ControlChannel, 'holdLogin'>;
  #state: LoginState = 'waiting';
  #isAsking = false;

  constructor(login: OpenLogin, placeholder: string, channel: Pick<ControlChannel, 'holdLogin'>) {
    const { host, pathname } = new URL(login.tokenUrl);
    this.host = host;
    this.path = pathname;
    this.clientId = login.clientId;
    this.grants = login.grants;
    this.placeholder = placeholder;
    this.#login = login;
    this.#channel = channel;
  }

  get state(): LoginState {
    return this.#state;
  }

  get id(): string {
    return this.#login.id;
  }

  /** Milliseconds since the epoch. */
  get expiresAt(): number {
    return this.#login.expiresAt;
  }

  begin(): Result<void, Refusal> {
    if (this.#state === 'waiting' && !this.#isAsking) {
      this.#isAsking = true;
      return ok(undefined);
    }
    this.#state = 'contested';
    const message =
      'this session was started for one login, and a second one was asked for: begin again with svc login';
    return err(refusal('login_not_accepted', message));
  }

  end(): void {
    this.#isAsking = false;
  }

  async hold(tokens: CapturedTokens): Promise<Result<void, Refusal>> {
    const held = await this.#channel.holdLogin(this.#login, tokens);
    if (this.#state === 'waiting') this.#state = held.ok ? 'held' : 'not_stored';
    if (held.ok) return ok(undefined);
    const message = `the tokens of this login could not be stored, so the reply was withheld: ${held.error.message}`;
    return err(refusal('login_not_stored', message));
  }
}
