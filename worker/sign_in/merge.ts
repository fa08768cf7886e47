import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { MERGED_KINDS, type MergedKind, type MergePreview, type MergeReply } from '../../shared/wire/people/merges.ts';
import type { Caller } from '../kernel/caller.ts';
import { type AuditDraft, commit } from '../kernel/commit.ts';
import { controlChain } from '../kernel/policy_change.ts';
import { additionsOfMove } from '../kernel/quotas.ts';
import type { SealPlace } from '../kernel/vault.ts';
import { keyPlace, revocationPlace, valuePlace } from '../services/sources/sourced_secret.ts';
import type { Account } from '../store/accounts.ts';
import {
  isAlone,
  listNamed,
  listSealedOf,
  type MergePlaces,
  moveOwned,
  type Resealed,
} from '../store/people/merges.ts';
import type { SignInContext } from './sign_in_context.ts';
import { findSwitch } from './switch_enterprise.ts';

/** The most things that move at a time: they are written in one transaction. */
const MAX_MOVED = 1_000;

interface Plan {
  readonly places: MergePlaces;
  readonly source: Account['enterprise'];
  readonly preview: MergePreview;
}

/**
 * What would move from an enterprise in which the caller is alone to the caller's user here. Only a sign-in of the
 * person's own reaches both, and only one that the other enterprise admits. Refuses with the codes of {@link findSwitch},
 * `not_alone`, `conflict`.
 */
export async function previewMerge(
  context: SignInContext,
  caller: Caller,
  from: string,
): Promise<Result<MergePreview, ApiError>> {
  const plan = await planMerge(context, caller, from);
  return plan.ok ? ok(plan.value.preview) : plan;
}

/**
 * Moves everything that the caller and the enterprise own there to the caller's user here, as personal, in one write.
 * Values are opened and sealed for the new owner; none leaves the vault. Refuses like {@link previewMerge}, and with
 * `not_confirmed`, `name_taken`, `limit_reached`.
 */
export async function mergeEnterprise(
  context: SignInContext,
  caller: Caller,
  { from, confirm }: { readonly from: string; readonly confirm: string },
): Promise<Result<MergeReply, ApiError>> {
  const plan = await planMerge(context, caller, from);
  if (!plan.ok) return plan;
  const refusal = moveProblem(plan.value, confirm);
  if (refusal !== null) return err(refusal);
  const source = plan.value.places.from;
  // In the log that the things leave, before they do.
  const recorded = await commit(context, controlChain(source), async () =>
    ok({
      statements: [],
      events: [mergeEvent('control.merge.began', source.userId, caller.enterpriseId)],
      value: null,
    }),
  );
  if (!recorded.ok) return recorded;
  return commit(context, controlChain(caller), async () => {
    const again = await planMerge(context, caller, from);
    if (!again.ok) return again;
    const problem = moveProblem(again.value, confirm);
    if (problem !== null) return err(problem);
    const { places, preview } = again.value;
    const { clashes: _none, ...moved } = preview;
    return ok({
      statements: moveOwned(context.database, places, await resealAll(context, places)),
      events: [mergeEvent('control.merge.done', caller.userId, from)],
      adds: additionsOfMove(context, ownersOf(places), caller.userId),
      value: moved,
    });
  });
}

async function planMerge(context: SignInContext, caller: Caller, from: string): Promise<Result<Plan, ApiError>> {
  const { database } = context;
  // By the rules of the enterprise that things leave, as for a sign-in there: a way that it refuses takes nothing out of it.
  const found = context.local === null ? await findSwitch(context, caller, from) : err(onlyOneHere(from));
  if (!found.ok) return found;
  const source = found.value.account;
  if (from === caller.enterpriseId) return err(apiError('conflict', 'this is the enterprise that you are in'));
  const places = { from: { userId: source.user.id, enterpriseId: from }, to: caller };
  if (source.user.suspendedAt !== null || source.user.role !== 'owner' || !(await isAlone(database, places.from))) {
    return err(notAlone());
  }
  const { id, slug, name } = source.enterprise;
  const { moves, clashes } = await examineAll(context, places);
  const preview = { enterprise_id: id, slug, name, moves, clashes };
  return ok({ places, source: source.enterprise, preview });
}

async function examineAll(context: SignInContext, places: MergePlaces) {
  const moves = { secret: 0, host_binding: 0, tunnel_host: 0, client_certificate: 0, connector: 0, mcp_server: 0 };
  const clashes: MergePreview['clashes'] = [];
  for (const kind of MERGED_KINDS) {
    const found = await examineKind(context, places, kind);
    moves[kind] = found.count;
    clashes.push(...found.clashes.map((name) => ({ kind, name })));
  }
  return { moves, clashes };
}

/** How many of a kind move, and whose names are there twice. */
async function examineKind({ database }: SignInContext, { from, to }: MergePlaces, kind: MergedKind) {
  const moving = await listNamed(database, kind, [from.userId, from.enterpriseId]);
  const taken = await listNamed(database, kind, [to.userId]);
  const seen = new Set(taken.map(({ key }) => key));
  const clashes: string[] = [];
  for (const { key, name } of moving) {
    if (seen.has(key)) clashes.push(name);
    seen.add(key);
  }
  return { count: moving.length, clashes };
}

function moveProblem({ source, preview }: Plan, confirm: string): ApiError | null {
  if (confirm !== source.slug)
    return apiError('not_confirmed', 'confirm is not the slug of the enterprise: nothing moved');
  const [clash] = preview.clashes;
  if (clash !== undefined) {
    const message = `nothing moved: ${preview.clashes.length} names are taken, such as ${clash.kind} ${clash.name}`;
    return apiError('name_taken', `${message}: rename or delete them on one side`, { clashes: preview.clashes });
  }
  const count = Object.values(preview.moves).reduce((sum, each) => sum + each, 0);
  return count <= MAX_MOVED ? null : apiError('limit_reached', `at most ${MAX_MOVED} things move at a time`);
}

/** The two owners whose things move. */
function ownersOf({ from: { userId, enterpriseId } }: MergePlaces) {
  return [userId, enterpriseId].map((id) => ({ id, enterpriseId }));
}

/** Each secret, sealed for its new owner. */
async function resealAll(context: SignInContext, { from, to }: MergePlaces): Promise<Resealed[]> {
  const rows = await listSealedOf(context.database, [from.userId, from.enterpriseId]);
  return Promise.all(
    rows.map(async ({ secret, source }): Promise<Resealed> => {
      const { ownerId: owner, path, version } = secret;
      const after = { ...secret, ownerId: to.userId };
      const value = await openAt(context, { owner, path, version }, secret.sealed);
      return {
        before: secret,
        sealed: await context.vault.seal({ owner: to.userId, path, version }, value),
        fingerprint: secret.fingerprint === null ? null : await context.vault.fingerprint(to.userId, value),
        source: source && {
          sealedMaterial: await reseal(context, keyPlace(secret), keyPlace(after), source.sealedMaterial),
          sealedValue:
            source.sealedValue === null
              ? null
              : await reseal(context, valuePlace({ secret }), valuePlace({ secret: after }), source.sealedValue),
          sealedRevocation:
            source.sealedRevocation === null
              ? null
              : await reseal(
                  context,
                  revocationPlace({ secret }),
                  revocationPlace({ secret: after }),
                  source.sealedRevocation,
                ),
        },
      };
    }),
  );
}

async function reseal(context: SignInContext, before: SealPlace, after: SealPlace, sealed: string): Promise<string> {
  return context.vault.seal(after, await openAt(context, before, sealed));
}

async function openAt({ vault }: SignInContext, place: SealPlace, sealed: string): Promise<Secret> {
  const value = await vault.open(place, sealed);
  if (value !== null) return value;
  throw Object.assign(new Error('the vault cannot open a secret that moves'), { code: 'vault_entry_damaged' });
}

function mergeEvent(type: 'control.merge.began' | 'control.merge.done', actor: string, resource: string): AuditDraft {
  return { type, actor, data: { 'svc.control.resource': resource } };
}

function onlyOneHere(id: string): ApiError {
  return apiError(
    'not_found',
    `nothing can be moved from the enterprise ${id}, because on your own machine there is only one: do it at a hosted control plane`,
  );
}

function notAlone(): ApiError {
  return apiError('not_alone', 'only an enterprise of which you are the owner, and the only one in it, can be merged');
}
