import { borrowConsentsPath, readBorrowConsents, stampOf } from '../../machine/borrow/consents_file.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { type StateFileProblemReason, writePrivateFile } from '../../machine/state_file.ts';
import { grantText } from '../../shared/borrow/borrow_grant.ts';
import type { Clock } from '../../shared/model/clock.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import type { Problem } from '../../shared/model/problem.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { BorrowConsent } from '../../shared/borrow/borrow_calls.ts';

interface BorrowConsentsOptions {
  /** `$SVC_HOME`. */
  readonly home: string;
  /** A consent that was given for another enrolment does not count. */
  readonly sidecarId: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

type Changed<T> = Result<T, Problem<StateFileProblemReason>>;

/**
 * The consents of this machine to borrowed secrets. The file is looked at on every use, so deleting it withdraws every consent;
 * an unusable file counts as no consent.
 */
export class BorrowConsents {
  readonly #path: string;
  readonly #options: BorrowConsentsOptions;
  #stamp = '';
  #read: readonly BorrowConsent[] = [];
  #warned = '';
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: BorrowConsentsOptions) {
    this.#options = options;
    this.#path = borrowConsentsPath(options.home);
  }

  /** The consents that count. */
  listAll(): readonly BorrowConsent[] {
    const stamp = stampOf(this.#path);
    if (stamp === this.#stamp) return this.#read;
    const read = readBorrowConsents(this.#path);
    if (!read.ok && this.#warned !== read.error.message) {
      this.#options.warn(`No secret is borrowed: ${read.error.message}`);
      this.#warned = read.error.message;
    }
    this.#read = read.ok ? read.value.filter((consent) => this.#counts(consent)) : [];
    this.#stamp = read.ok ? stamp : '';
    return this.#read;
  }

  find(ref: CredentialRef): BorrowConsent | null {
    return this.listAll().find((consent) => isAt(consent, ref)) ?? null;
  }

  /** Stores a consent in place of an earlier one to the same secret. */
  give(grant: BorrowConsent['grant']): Promise<Changed<BorrowConsent>> {
    return this.#change((consents) => {
      const given: BorrowConsent = {
        grant,
        hash: sha256Hex(grantText(grant)),
        sidecar_id: this.#options.sidecarId,
        consented_at: new Date(this.#options.clock.now()).toISOString(),
      };
      return { value: given, kept: [...consents.filter((consent) => !isAt(consent, grant)), given] };
    });
  }

  /** False if there was none. */
  withdraw(ref: CredentialRef): Promise<Changed<boolean>> {
    return this.#change((consents) => {
      const kept = consents.filter((consent) => !isAt(consent, ref));
      return { value: kept.length < consents.length, kept };
    });
  }

  /** The hash is not taken from the file: it has to be that of what the file says. */
  #counts({ grant, hash, sidecar_id: sidecarId }: BorrowConsent): boolean {
    return sidecarId === this.#options.sidecarId && hash === sha256Hex(grantText(grant));
  }

  #change<T>(
    make: (consents: readonly BorrowConsent[]) => { readonly value: T; readonly kept: readonly BorrowConsent[] },
  ): Promise<Changed<T>> {
    const changed = this.#writing.then(async (): Promise<Changed<T>> => {
      const read = readBorrowConsents(this.#path);
      if (!read.ok) return read;
      const { value, kept } = make(read.value.filter((consent) => this.#counts(consent)));
      try {
        await writePrivateFile(this.#path, `${JSON.stringify({ version: 1, consents: kept }, null, 2)}\n`);
      } catch (error) {
        const why = errorCode(error) || 'unknown error';
        const message = `cannot write ${this.#path} (${why}). Give this user write access and enough disk space there.`;
        return err({ reason: 'state_file_unreadable', message });
      }
      return ok(value);
    });
    this.#writing = changed;
    return changed;
  }
}

function isAt({ grant }: { readonly grant: CredentialRef }, { owner, path }: CredentialRef): boolean {
  return grant.owner === owner && grant.path === path;
}
