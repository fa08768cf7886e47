import { type AccountQuery, accountQueryOf } from '../../shared/connect/account_query.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { CapturedTokens, ControlChannel, OpenLogin } from '../control/control_channel.ts';
import type { LoginState, SessionLogin } from '../ports.ts';

/** A program asks once; a lost connection may make it ask again. */
const MOST_QUESTIONS = 3;

/** The login of a session, whose tokens go to the control plane. */
export class CapturedLogin implements SessionLogin {
  readonly host: string;
  readonly path: string;
  readonly clientId: string;
  readonly grants: OpenLogin['grants'];
  readonly placeholder: string;
  readonly account: AccountQuery | null;
  readonly #login: OpenLogin;
  readonly #channel: Pick<ControlChannel, 'holdLogin'>;
  #state: LoginState = 'waiting';
  #isAsking = false;
  /** Kept only until the provider has said whose it is. */
  #token: Secret | null = null;
  #questions = 0;
  #who: string | null = null;
  /** The code of the request that runs, or of the last one. */
  #code: string | null = null;

  constructor(login: OpenLogin, placeholder: string, channel: Pick<ControlChannel, 'holdLogin'>) {
    const { host, pathname } = new URL(login.tokenUrl);
    this.host = host;
    this.path = pathname;
    this.clientId = login.clientId;
    this.grants = login.grants;
    this.placeholder = placeholder;
    this.account = accountQueryOf(login.tokenUrl);
    this.#login = login;
    this.#channel = channel;
  }

  get state(): LoginState {
    return this.#state;
  }

  /** The name of the account, as the provider answered to the question of the sidecar. */
  get who(): string | null {
    return this.#who;
  }

  get id(): string {
    return this.#login.id;
  }

  /** Milliseconds since the epoch. */
  get expiresAt(): number {
    return this.#login.expiresAt;
  }

  begin(code: string): Result<void, Refusal> {
    if (this.#isUndecided && !this.#isAsking) {
      this.#isAsking = true;
      this.#code = code;
      return ok(undefined);
    }
    // A program tries again what was not answered. That is no second login.
    if (code === this.#code || this.#state === 'not_stored') {
      return err(refusal('login_not_accepted', 'this login was sent before: begin again with svc login'));
    }
    this.#state = 'contested';
    this.#token = null;
    const message =
      'this session was started for one login, and a second one was asked for: begin again with svc login';
    return err(refusal('login_not_accepted', message));
  }

  end(): void {
    this.#isAsking = false;
  }

  takeForAccount(): Result<Secret, Refusal> {
    const token = this.#token;
    this.#questions += 1;
    if (this.#questions >= MOST_QUESTIONS) this.#token = null;
    if (token !== null && this.#state === 'held') return ok(token);
    const message = 'the account of this login was asked for already: begin again with svc login';
    return err(refusal('login_not_accepted', message));
  }

  nameAccount(name: string): void {
    this.#who = name;
    this.#token = null;
  }

  withhold(): void {
    if (this.#state === 'waiting') this.#state = 'withheld';
  }

  /** Whether the session may still capture a login. */
  get #isUndecided(): boolean {
    return this.#state === 'waiting' || this.#state === 'withheld';
  }

  async hold(tokens: CapturedTokens): Promise<Result<void, Refusal>> {
    const held = await this.#channel.holdLogin(this.#login, tokens);
    if (this.#isUndecided) this.#state = held.ok ? 'held' : 'not_stored';
    if (this.#state === 'held' && this.account !== null) this.#token = tokens.accessToken;
    if (held.ok) return ok(undefined);
    const message = `the tokens of this login could not be stored, so the reply was withheld: ${held.error.message}`;
    return err(refusal('login_not_stored', message));
  }
}
